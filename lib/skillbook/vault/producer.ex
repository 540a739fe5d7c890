defmodule Skillbook.Vault.Producer do
  @moduledoc """
  Where the documents of a vault come from: a folder, or a remote drive, behind one behaviour.

  A vault takes one as `producer: {Module, options}`; `path: folder` is short for the producer of folders. The indexer asks it
  what there is, reads what is new, and listens to it for changes; it knows nothing else of it. [Vaults](docs/vaults.md#producers) has
  one for a remote drive.

  ## Errors

  What `c:list/2` and `c:read/2` give as `{:error, reason}`, raise or exit with loses nothing: what is known stays as it is, the log
  says why, and all is compared again after five seconds. Only what a list that succeeded does not have, and what is `:missing` or
  `{:skip, reason}` when it is read, goes.

  Vaults of no producer have what the application gives to `Skillbook.Vault.put/3`.
  """

  @typedoc """
  A document that there is.

    * `:id` - what the producer calls it; for a folder the path below it
    * `:size` - in bytes, or nil
    * `:mtime` - when it changed last, in seconds since 1970, or nil. What has both as before is not read again
  """
  @type listed :: %{id: String.t(), size: non_neg_integer() | nil, mtime: integer() | nil}

  @typedoc """
  A document as read.

    * `:path` - where it stands for its readers, names joined by `/`; its folder and its name are taken from it
    * `:content` - the whole text, with its frontmatter
    * `:labels` - visibility labels beside those of the frontmatter and of the vault; none if left out
  """
  @type document :: %{
          required(:path) => String.t(),
          required(:content) => binary(),
          optional(:labels) => [String.t()]
        }

  @doc """
  The documents that there are: all for `""`, else the one of an id, and those below it where an id is a folder's. With them
  the reasons for which others were left out, for the log.
  """
  @callback list(options :: keyword(), under :: String.t()) ::
              {:ok, [listed()]}
              | {:ok, [listed()], [skipped :: String.t()]}
              | {:error, reason :: term()}

  @doc """
  Reads one. `:missing` if it has gone since, `{:skip, reason}` if it is nothing to index: then what is known of it goes.
  `{:error, reason}` if it cannot be read now. Several are read at a time, each in a process of its own.
  """
  @callback read(options :: keyword(), id :: String.t()) ::
              {:ok, document()}
              | :missing
              | {:skip, reason :: String.t()}
              | {:error, reason :: term()}

  @doc """
  Begins to tell the calling process, which is the vault's indexer, of changes: by messages of any form, which `c:changed/2` reads.
  What it gives is kept for as long as the process lives. What it starts must end with that process.
  """
  @callback watch(options :: keyword()) :: term()

  @doc "What a message says has changed: ids, `:all` for all, or `:ignore` for one that says nothing."
  @callback changed(options :: keyword(), message :: term()) :: [String.t()] | :all | :ignore

  @optional_callbacks watch: 1, changed: 2
end
