defmodule Skillbook.Entry do
  @moduledoc """
  One document with its metadata.

  ## Fields

    * `:name` - its name, which occurs once in a catalog
    * `:kind` - `:command` (`email.send`), `:skill` or `:note`
    * `:domain` - a command's domain, else `nil`
    * `:title` - the title; a note without one has its first heading or its file's name
    * `:description` - what it is for; `""` for a note without one
    * `:handler` - the module that runs it, as written; it is resolved only when it runs
    * `:tags`, `:aliases`, `:requires`, `:allowed_tools` - lists of texts
    * `:labels` - the visibility labels, its own and its source's
    * `:effects` - `:read`, `:write` or `nil`
    * `:schedule`, `:timezone` - as written
    * `:include_in_prompt` - whether it belongs into prompts; profiles may be named that differ
    * `:usage` - the first line of its Usage section
    * `:data` - the frontmatter as written, with string keys
    * `:body` - the text after the frontmatter
    * `:path` - its file
    * `:source` - its source's name
  """

  @type t :: %__MODULE__{
          name: String.t(),
          kind: :command | :skill | :note,
          domain: String.t() | nil,
          title: String.t() | nil,
          description: String.t(),
          handler: String.t() | nil,
          tags: [String.t()],
          labels: [String.t()],
          aliases: [String.t()],
          requires: [String.t()],
          effects: :read | :write | nil,
          allowed_tools: [String.t()],
          schedule: String.t() | nil,
          timezone: String.t() | nil,
          include_in_prompt: boolean(),
          usage: String.t() | nil,
          data: map(),
          body: binary(),
          path: String.t(),
          source: String.t()
        }

  @enforce_keys [:name, :kind, :description, :body, :path, :source]
  defstruct [
    :name,
    :kind,
    :domain,
    :title,
    :description,
    :handler,
    :effects,
    :schedule,
    :timezone,
    :usage,
    :body,
    :path,
    :source,
    tags: [],
    labels: [],
    aliases: [],
    requires: [],
    allowed_tools: [],
    include_in_prompt: true,
    data: %{}
  ]
end
