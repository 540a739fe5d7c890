defmodule Skillbook.Vault.Producer do
  @moduledoc """
  A behaviour for the origin of a vault's documents, such as a folder or a remote drive.

  A vault takes a producer as `producer: {module, options}`; `path: folder` is short for
  `Skillbook.Vault.Folder`. The vault's indexer lists the documents, reads the new ones, and
  listens for changes. [Vaults](vaults.md#index-documents-from-elsewhere) has a producer for a
  remote drive.

  ## Examples

  A producer without notifications; `Skillbook.Vault.sync/2` updates its vault:

      defmodule MyApp.Articles do
        @behaviour Skillbook.Vault.Producer

        @impl true
        def list(_options, ""), do: {:ok, Enum.map(MyApp.Blog.all(), &reference/1)}
        def list(_options, id), do: {:ok, id |> MyApp.Blog.find() |> Enum.map(&reference/1)}

        @impl true
        def read(_options, id) do
          case MyApp.Blog.find(id) do
            [article] -> {:ok, %{path: id <> ".md", content: article.text}}
            [] -> :missing
          end
        end

        defp reference(article), do: %{id: article.id, size: nil, mtime: article.changed_at}
      end

  ## Errors

  If `c:list/2` or `c:read/2` returns `{:error, reason}`, raises or exits, the index keeps its
  documents, the reason is logged, and the vault is compared again after five seconds, and then at
  growing intervals of up to a minute. Only
  documents that a successful list does not contain, and those that are `:missing` or
  `{:skip, reason}` when read, are removed from the index.
  """

  @typedoc """
  A listed document.

    * `:id` - the producer's id; for a folder the path
    * `:size` - in bytes, or nil
    * `:mtime` - the time of its last change in seconds since 1970, or nil. A document whose size
      and mtime have not changed is not read again. Any other number below the present time will
      do, if it changes with the text, the path and the labels
    * `:path` - the path that readers see, if the list knows it
  """
  @type listed :: %{
          required(:id) => String.t(),
          required(:size) => non_neg_integer() | nil,
          required(:mtime) => integer() | nil,
          optional(:path) => String.t()
        }

  @typedoc """
  A document with its content.

    * `:path` - the path that readers see, names joined by `/`. Default: that of the list
    * `:content` - the whole text with its frontmatter
    * `:labels` - visibility labels, in addition to those of the frontmatter and the vault.
      Default: none
  """
  @type document :: %{
          optional(:path) => String.t(),
          required(:content) => binary(),
          optional(:labels) => [String.t()]
        }

  @doc """
  Lists documents: all for `""`, else the one with an id, or all in the folder of that name.

  The third element is a list of log messages about documents that were left out.
  """
  @callback list(options :: keyword(), under :: String.t()) ::
              {:ok, [listed()]}
              | {:ok, [listed()], [skipped :: String.t()]}
              | {:error, reason :: term()}

  @doc """
  Reads a document.

  Returns `:missing` if it no longer exists and `{:skip, reason}` if it cannot be indexed; both
  remove it from the index. Returns `{:error, reason}` if it cannot be read at the moment. Called
  concurrently from several processes.
  """
  @callback read(options :: keyword(), id :: String.t()) ::
              {:ok, document()}
              | :missing
              | {:skip, reason :: String.t()}
              | {:error, reason :: term()}

  @doc """
  Starts sending the calling process, the vault's indexer, messages about changes.

  The messages may have any form; `c:changed/2` interprets them. The process keeps the returned
  value. Processes that this function starts must end with the calling process.
  """
  @callback watch(options :: keyword()) :: term()

  @doc "Returns the ids that a message reports as changed, `:all`, or `:ignore`."
  @callback changed(options :: keyword(), message :: term()) :: [String.t()] | :all | :ignore

  @optional_callbacks watch: 1, changed: 2
end
