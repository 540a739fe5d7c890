defmodule Skillbook.Stored do
  @moduledoc """
  An entry of the store, as `Skillbook.Store` returns it.

  ## Fields

    * `:name` - lowercase letters, digits and single `-` between them, at most 64 characters
    * `:kind` - `:skill` or `:note`
    * `:title` - one line, at most 200 characters
    * `:description` - its purpose, at most 1,024 characters, or `""`
    * `:content` - the whole text with its frontmatter; `nil` in lists and histories
    * `:tags`, `:attachments` - lists of texts, in the given order
    * `:labels` - the visibility labels, sorted
    * `:tenant` - the tenant that it belongs to, or `nil` if it is common to all tenants
    * `:include_in_prompt` - whether prompts list it
    * `:proactive_for`, `:excluded_for` - sorted profile ids: it is always, or never, in the
      prompts of these profiles
    * `:schedule` - the cron expression by which it runs automatically, or `nil`
    * `:timezone` - the time zone of the schedule, or `nil` for UTC
    * `:source` - the least trusted kind of author among its versions: `:user`, `:agent` or
      `:import`
    * `:author` - the id of the profile that wrote this version
    * `:version` - a number from 1 that each change raises by one
    * `:enabled` - whether it is in the catalog
    * `:created_at`, `:updated_at` - UTC, whole seconds
    * `:deleted_at` - the time of its deletion, or `nil`
    * `:hash` - a digest of the content

  The fields `:id` and `:writers` are private.

  ## Examples

      iex> {:ok, _} = Skillbook.start_link(name: StoredExample, store: ":memory:")
      iex> view = Skillbook.view(StoredExample, "default")
      iex> {:ok, _} = Skillbook.Store.put_note(view, "Milk", "Two bottles.")
      iex> {:ok, %Skillbook.Stored{} = milk} = Skillbook.Store.fetch(view, "milk")
      iex> {milk.kind, milk.title, milk.source, milk.author, milk.enabled}
      {:note, "Milk", :user, "default", true}
  """

  @type t :: %__MODULE__{
          id: pos_integer() | nil,
          name: String.t(),
          kind: :skill | :note,
          title: String.t(),
          description: String.t(),
          content: String.t() | nil,
          tags: [String.t()],
          labels: [String.t()],
          tenant: String.t() | nil,
          include_in_prompt: boolean(),
          proactive_for: [String.t()],
          excluded_for: [String.t()],
          schedule: String.t() | nil,
          timezone: String.t() | nil,
          writers: [String.t() | nil],
          source: :user | :agent | :import,
          author: String.t(),
          version: pos_integer(),
          enabled: boolean(),
          created_at: DateTime.t(),
          updated_at: DateTime.t(),
          deleted_at: DateTime.t() | nil,
          hash: String.t(),
          attachments: [String.t()]
        }

  @derive {Inspect, except: [:id, :writers]}
  defstruct [
    :id,
    :name,
    :kind,
    :title,
    :content,
    :tenant,
    :source,
    :author,
    :created_at,
    :updated_at,
    :deleted_at,
    :hash,
    :schedule,
    :timezone,
    description: "",
    tags: [],
    labels: [],
    include_in_prompt: true,
    proactive_for: [],
    excluded_for: [],
    attachments: [],
    writers: [],
    version: 1,
    enabled: true
  ]
end
