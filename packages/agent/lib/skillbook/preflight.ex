defmodule Skillbook.Preflight do
  @moduledoc ~S"""
  Picks the skills for a request before the model reads it, so that their pages are already there.

  Without a `:model` the router asks nobody. The model of the conversation still has the whole
  list of skills and can read any of them. `profile/3` picks the profile that answers.

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_preflight")
      iex> File.mkdir_p!(folder)
      iex> page = "---\nname: haiku\ndescription: Writes a haiku\n" <>
      ...>   "trigger_keywords: [haiku, short poem]\n---\nThree lines.\n"
      iex> File.write!(Path.join(folder, "haiku.md"), page)
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> view = Skillbook.View.all(catalog)
      iex> [pick] = Skillbook.Preflight.run(view, "Two short poems, please.").picks
      iex> {pick.name, pick.stage, pick.reason}
      {"haiku", :keywords, "keyword: short poem"}
      iex> Skillbook.Preflight.run(view, "Thank you!").needed
      false

  ## Stages

  The stages run in this order, within one time limit:

    * `:keywords` - the `trigger_keywords` of the entries, as whole words of the last message
    * `:retrieval` - a search with the last message, by words and, if the book has an embedder, by
      meaning. Each candidate has a calibrated confidence
    * `:model` - a model chooses, if there is a `:model`. It sees all entries if there are at most
      20, and otherwise 12 to 20 candidates of keywords, words and meaning. Its choice replaces
      that of `:retrieval`. It is not asked where its answer could change nothing; see
      [Routing](docs/routing.md#when-the-model-is-asked)

  If a stage fails, crashes or is too slow, the picks are those of the other stages.

  Only skills and commands in the profile's prompt are picked. A command is picked, not run: a
  model that reads its page decides about that.

  ## Fields

    * `:picks` - a list of `Skillbook.Preflight.Pick`, the most confident first. If there are more
      than `:max`, those of keywords come first
    * `:needed` - whether there are any
    * `:stages` - the stages that ran, each a `t:stage/0`; empty if the answer was cached
    * `:usage` - the tokens of the model, or `nil`

  [Routing](docs/routing.md) describes the calibration and the use by `Skillbook.Agent`.
  """

  alias Skillbook.Preflight.{Pick, Settings, Stages}
  alias Skillbook.Support.Options
  alias Skillbook.{Model, View}

  @typedoc """
  A stage that ran, or was skipped.

  `:status` is `:ok`, `:skipped` (it was not needed), `:failed` or `:timeout`; `:duration` is in
  microseconds; `:error` says why it failed. `:candidates` are the entries that it considered,
  best first, with their `:score`, `:words` and `:similarity` if it searched.
  """
  @type stage :: %{
          stage: Pick.stage(),
          status: :ok | :skipped | :failed | :timeout,
          duration: non_neg_integer(),
          error: String.t() | nil,
          candidates: [candidate()]
        }
  @type candidate :: %{
          required(:name) => String.t(),
          required(:confidence) => float(),
          required(:reason) => String.t(),
          optional(:score) => float(),
          optional(:words) => float(),
          optional(:similarity) => float() | nil
        }
  @type t :: %__MODULE__{
          picks: [Pick.t()],
          needed: boolean(),
          stages: [stage()],
          usage: Model.usage() | nil
        }

  # Each is fetched and described to the model.
  @max_profiles 100

  defstruct picks: [], needed: false, stages: [], usage: nil

  @doc """
  Picks entries of a view for the last message of a conversation.

  `messages` is a text, or a list of `t:Skillbook.Model.message/0` whose last user message is the
  request. Never raises for a failure of a stage; wrong options raise `Skillbook.OptionError`.

  ## Options

  Those of the book's `:preflight` and of the profile's are the defaults. If the profile has
  `preflight: false`, nothing is picked.

    * `:enabled` (boolean) - whether to pick at all. Defaults to `true`
    * `:stages` (list) - the stages to run, of `:keywords`, `:retrieval` and `:model`. Defaults to
      all
    * `:model` (a model or `nil`) - the model of the stage `:model`. Defaults to `nil`
    * `:max` (1 to 10) - the maximum number of picks. Defaults to `3`
    * `:threshold` (0 to 1) - the lowest confidence of a pick. Defaults to `0.5`
    * `:timeout` (milliseconds) - the time limit of all stages together. Defaults to `3_000` if
      there is a model to ask, and to `1_000` otherwise
    * `:max_tokens` (tokens) - how much text a conversation gets at once; see
      `Skillbook.Agent.run/3`. Defaults to `8_000`
    * `:explain` (boolean) - whether the stages run even if the answer is cached. Defaults to
      `false`
  """
  @spec run(Skillbook.view_or_book(), String.t() | [Model.message()], Skillbook.options()) :: t()
  def run(view_or_book, messages, options \\ []) do
    type = [messages: {if(is_list(messages), do: :list, else: :text), messages}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Preflight.run/3", type)
    {explain, options} = Keyword.pop(options, :explain, false)
    Stages.run(view, messages, Settings.of_call(view, options), explain)
  end

  @doc ~S"""
  Picks the profile whose description fits the last message of a conversation.

  The name of the pick is the id of the profile; at most one is picked. The candidates are the
  profiles in the book's list that have a `:description`, and that the caller may use: those with
  no right that the view's profile does not have, and that see no entry that it does not see. Its
  own profile is one of them. A profile that the caller may not use looks like a missing one.

      iex> profiles = [
      ...>   [id: "assistant", grants: ["home", "money"]],
      ...>   [id: "house", grants: ["home"], description: "Lights, heating, locks of the house"],
      ...>   [id: "bank", grants: ["money"], description: "Accounts, bills and payments"],
      ...>   [id: "guest"]
      ...> ]
      iex> {:ok, _pid} = Skillbook.start_link(name: :household, sources: [], profiles: profiles)
      iex> pick = fn id, text, options ->
      ...>   result = Skillbook.Preflight.profile(Skillbook.view(:household, id), text, options)
      ...>   Enum.map(result.picks, & &1.name)
      ...> end
      iex> model = Skillbook.Model.Function.new(fn _messages, _options ->
      ...>   ~S({"agents": [{"name": "house", "confidence": 0.9, "reason": "a lock"}],
      ...>     "no_agent_needed": false})
      ...> end)
      iex> pick.("assistant", "Is the front door locked?", model: model)
      ["house"]
      iex> pick.("guest", "Is the front door locked?", model: model)
      []

  ## Options

  Those of `run/3`, of which `:max` and the stage `:keywords` have no effect, and:

    * `:profiles` (list of at most 100 ids, or `nil`) - choose among these profiles, listed ones
      and those that a function of the application returns. The application decides that the
      caller may use them; ids of other tenants are left out all the same. Defaults to `nil`, the
      rule above
  """
  @spec profile(Skillbook.view_or_book(), String.t() | [Model.message()], Skillbook.options()) ::
          t()
  def profile(view_or_book, messages, options \\ []) do
    type = [messages: {if(is_list(messages), do: :list, else: :text), messages}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Preflight.profile/3", type)
    {explain, options} = Keyword.pop(options, :explain, false)
    {ids, options} = Keyword.pop(options, :profiles)
    schema = [profiles: {"a list of at most #{@max_profiles} ids or nil", &ids?/1}]

    with {:error, error} <- Options.validate([profiles: ids], "a choice of a profile", schema),
         do: raise(error)

    Stages.profile(view, messages, Settings.of_call(view, options), explain, ids)
  end

  defp ids?(ids), do: ids == nil or (Options.texts?(ids) and length(ids) <= @max_profiles)
end
