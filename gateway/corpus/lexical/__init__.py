"""The lexical leg: words to terms (`terms`), terms to packed postings and exact BM25 over them (`postings`)."""
