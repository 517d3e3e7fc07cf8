"""Review policy: figures in, verdict out."""
