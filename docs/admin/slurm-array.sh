#!/bin/sh
# One data directory, carried by eight tasks of a Slurm array:  sbatch slurm-array.sh
# Before the first time, once, so that all tasks are one uploader:
#   mydata-like settings set instrument.uuid "$(uuidgen)" && mydata-like register
# What failed is simply repeated, say shards 3 and 5:           sbatch --array=3,5 slurm-array.sh
#SBATCH --job-name=mydata-like
#SBATCH --array=1-8
#SBATCH --cpus-per-task=2
#SBATCH --mem=1G
#SBATCH --signal=B:TERM@60
set -eu

shards=8 # the same as in --array above, also when only some of them are repeated

# The ledger belongs on a local disk; a lost one costs a listing of each dataset.
exec mydata-like run --json --shard "$SLURM_ARRAY_TASK_ID/$shards" \
  --set "advanced.state_directory=${TMPDIR:-/tmp}/mydata-like-$(id -u)"
