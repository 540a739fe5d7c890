defmodule Skillbook.Test.Evaluation do
  @moduledoc """
  An evaluation: a request to a model that has a skill, and the checks of its answer.

  `Skillbook.Test.read_evaluations/1` reads evaluations from files beside skills, which
  [testing](docs/testing.md#evaluations) describes; `Skillbook.Test.evaluate/2` runs them.

  ## Fields

    * `:path`, `:line` - the file, and the line where the evaluation begins
    * `:format` - `:skillbook`, `:skill_kit` or `:skill_creator`
    * `:name` - its name, unique in the file
    * `:skill` - the name of the skill under test; `nil` for the one beside the file
    * `:beside` - the file of the skill that it lies beside, or `nil`
    * `:requests` - the messages of the user, sent one after the other
    * `:files` - paths of files whose texts are added to the first message
    * `:profile` - the id of the profile, or `nil` for that of the run
    * `:system` - text before the skills in the system prompt, or `nil`
    * `:setup` - commands that run before the first request
    * `:stubs` - answers in place of handlers: a map from names to texts or `{:error, text}`
    * `:ask` - the answer to questions: `:allow` or `:deny`
    * `:now` - the time of the run, or `nil` for the system's
    * `:calls`, `:not_calls` - commands that must be called, and that must not be
    * `:reads` - skills that the model must read
    * `:contains`, `:not_contains`, `:matches` - texts that the last answer must have, that it
      must not have, and sources of regular expressions that must match it
    * `:rubric` - statements about the conversation for a judging model
    * `:max_turns`, `:max_time` (milliseconds), `:max_tokens` - limits of the run
    * `:repeat` - how often it runs

  ## Examples

      iex> number = System.unique_integer([:positive])
      iex> folder = Path.join(System.tmp_dir!(), "evaluation-\#{number}")
      iex> File.mkdir_p!(folder)
      iex> File.write!(Path.join(folder, "evals.yaml"), \"""
      ...> evaluations:
      ...>   - name: late order
      ...>     request: Where is order 7?
      ...>     calls: [orders.find --id 7]
      ...> \""")
      iex> {[evaluation], []} = Skillbook.Test.read_evaluations(folder)
      iex> File.rm_rf!(folder)
      iex> {evaluation.name, evaluation.requests, evaluation.line}
      {"late order", ["Where is order 7?"], 2}
  """

  @typedoc "An expected call: `:args` and `:flags` that it must have, `:exact` for no others."
  @type expected :: %{
          name: String.t(),
          flags: %{String.t() => term()},
          args: [String.t()],
          exact: boolean()
        }

  @type t :: %__MODULE__{
          path: Path.t(),
          line: pos_integer(),
          format: :skillbook | :skill_kit | :skill_creator,
          name: String.t(),
          skill: String.t() | nil,
          beside: Path.t() | nil,
          requests: [String.t()],
          files: [Path.t()],
          profile: String.t() | nil,
          system: String.t() | nil,
          setup: [String.t()],
          stubs: %{String.t() => String.t() | {:error, String.t()}},
          ask: :allow | :deny,
          now: DateTime.t() | nil,
          calls: [expected()],
          not_calls: [expected()],
          reads: [String.t()],
          contains: [String.t()],
          not_contains: [String.t()],
          matches: [String.t()],
          rubric: [String.t()],
          max_turns: pos_integer(),
          max_time: pos_integer(),
          max_tokens: pos_integer() | nil,
          repeat: pos_integer()
        }

  @enforce_keys [:path, :line, :name]
  defstruct [
    :path,
    :line,
    :name,
    :skill,
    :beside,
    :profile,
    :system,
    :now,
    :max_tokens,
    format: :skillbook,
    requests: [],
    files: [],
    setup: [],
    stubs: %{},
    ask: :allow,
    calls: [],
    not_calls: [],
    reads: [],
    contains: [],
    not_contains: [],
    matches: [],
    rubric: [],
    max_turns: 10,
    max_time: 120_000,
    repeat: 1
  ]

  @doc false
  # The file of the recording of a run.
  @spec recording(t(), :with | :without | :before, pos_integer(), boolean()) :: Path.t()
  def recording(evaluation, variant, number, judge? \\ false) do
    parts =
      [slug(evaluation.name)] ++
        if(variant == :with, do: [], else: [to_string(variant)]) ++
        if(number == 1, do: [], else: ["#{number}"]) ++ if(judge?, do: ["judge"], else: [])

    Path.join(Path.rootname(evaluation.path) <> ".recordings", Enum.join(parts, ".") <> ".json")
  end

  @doc false
  # The name in a file's name. Names of one file have different ones.
  @spec slug(String.t()) :: String.t()
  def slug(name) do
    slug =
      name
      |> String.downcase()
      |> String.replace(~r/[^\p{L}\p{N}]+/u, "-")
      |> String.trim("-")
      |> String.slice(0, 60)

    if slug == "", do: "evaluation", else: slug
  end
end
