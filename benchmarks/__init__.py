"""schemasync and its peers on the same change sets: generated, merged, read, checked, timed; see README.md here."""
