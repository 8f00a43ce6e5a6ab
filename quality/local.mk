# quality
