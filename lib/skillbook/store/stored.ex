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
end
