defmodule Skillbook.Stored do
  @moduledoc """
  An entry of the store, as `Skillbook.Store` gives it.

  ## Fields

    * `:name` - small letters, digits and single `-` between them, at most 64 characters
    * `:kind` - `:skill` or `:note`
    * `:title` - one line, at most 200 characters
    * `:description` - what it is for, at most 1,024 characters; `""` for none
    * `:content` - the whole text, its frontmatter included; `nil` in lists and histories, which do not read it
    * `:tags`, `:attachments` - lists of texts, in the order in which they were given
    * `:labels` - the visibility labels, sorted
    * `:include_in_prompt` - whether it belongs into prompts
    * `:proactive_for`, `:excluded_for` - the ids of profiles that differ, sorted: in the prompt of these, and never there
    * `:schedule` - the cron expression by which it runs by itself, or `nil`
    * `:timezone` - the time zone of that, or `nil` for UTC
    * `:source` - `:user`, `:agent` or `:import`: the one of them that is trusted least among those that had a part in it
    * `:author` - the id of the profile that wrote this version
    * `:version` - a number, from 1; each change raises it by one
    * `:enabled` - whether it is in the catalog
    * `:created_at`, `:updated_at` - UTC, whole seconds
    * `:deleted_at` - when it was deleted, or `nil`
    * `:hash` - a digest of the content

  The fields `:id` and `:writers` are private.
  """

  alias Skillbook.JSON

  @type t :: %__MODULE__{
          id: pos_integer() | nil,
          name: String.t(),
          kind: :skill | :note,
          title: String.t(),
          description: String.t(),
          content: String.t() | nil,
          tags: [String.t()],
          labels: [String.t()],
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

  @columns ~w(id name kind title description content tags labels include_in_prompt proactive_for excluded_for source
              author version enabled created_at updated_at deleted_at hash attachments schedule timezone writers)a

  @doc false
  # The columns of `skillbook_entries` of which `from_row/1` makes an entry, in its order.
  @spec columns() :: [atom()]
  def columns, do: @columns

  @doc false
  @spec from_row([term()]) :: t()
  def from_row(row) do
    @columns
    |> Enum.zip(row)
    |> Enum.map(fn {column, value} -> {column, from_column(column, value)} end)
    |> then(&struct!(__MODULE__, &1))
  end

  @doc false
  # A value as it stands in a column of the field's name.
  @spec to_column(atom(), term()) :: Skillbook.SQL.param()
  def to_column(field, list) when field in [:labels, :proactive_for, :excluded_for],
    do: list |> Enum.uniq() |> Enum.sort() |> json()

  def to_column(_field, list) when is_list(list), do: json(list)
  def to_column(_field, value) when is_boolean(value) or is_nil(value), do: value
  def to_column(_field, value) when is_atom(value), do: Atom.to_string(value)
  def to_column(_field, value), do: value

  defp json(list), do: list |> JSON.encode()

  @doc false
  # The value of a field as it stands in a column of its name.
  @spec from_column(atom(), term()) :: term()
  def from_column(_field, nil), do: nil
  def from_column(field, value) when field in [:include_in_prompt, :enabled], do: value == 1
  def from_column(:kind, "skill"), do: :skill
  def from_column(:kind, "note"), do: :note
  def from_column(:source, "user"), do: :user
  def from_column(:source, "agent"), do: :agent
  def from_column(:source, "import"), do: :import

  def from_column(field, json)
      when field in [:tags, :labels, :proactive_for, :excluded_for, :attachments, :writers] do
    {:ok, list} = JSON.decode(json)
    list
  end

  def from_column(field, text) when field in [:created_at, :updated_at, :deleted_at] do
    {:ok, time, 0} = DateTime.from_iso8601(text)
    time
  end

  def from_column(_field, value), do: value
end
