"""What happens after "queued": the ledger's runner, the pipeline, maintenance. Started as `python -m workers`."""
