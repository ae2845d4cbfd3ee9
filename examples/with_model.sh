# Runs PROGRAM with the folder of a fetched model: with_model.sh MODEL PROGRAM. Exit code 77 where the model is missing.
folder=${RLX_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/rlx/models}/$1
if [ ! -f "$folder/config.json" ]; then
  echo "$folder is missing: scripts/fetch_models $1"
  exit 77
fi
exec "$2" "$folder"
