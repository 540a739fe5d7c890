defmodule Skillbook.Agent do
  @moduledoc ~S"""
  Runs a conversation with a model: asks it, runs the commands of its reply, reports their
  results, and repeats until a reply has no commands. Models with native tool calls call the
  commands as tools.

      iex> alias Skillbook.{Agent, Model}
      iex> book = [name: :agent_example, builtins: ["memory"], store: ":memory:"]
      iex> {:ok, _pid} = Skillbook.start_link(book)
      iex> model = Model.Function.new(fn messages, _options ->
      ...>   case List.last(messages).content do
      ...>     "Remember that I like tea." ->
      ...>       "On it.\n\n```cmd\nmemory.save --content \"Likes tea\"\n```"
      ...>
      ...>     "[1] memory.save" <> _report ->
      ...>       "I will remember it."
      ...>   end
      ...> end)
      iex> {:ok, result} = Agent.run(:agent_example, "Remember that I like tea.", model: model)
      iex> {result.status, result.text, result.turns}
      {:done, "I will remember it.", 2}
      iex> Enum.map(result.transcript.messages, & &1.kind)
      [:prompt, :input, :reply, :report, :reply]

  To continue a conversation, pass `result.transcript` as `:transcript` of the next run.

  ## Protocols

  With `protocol: :blocks` the model writes commands in `cmd` blocks, which every model can. With
  `:tools` it gets the tools of its view (`Skillbook.Tools.list/2`) and calls them:

      iex> alias Skillbook.{Agent, Model}
      iex> book = [name: :agent_tools, builtins: ["memory"], store: ":memory:"]
      iex> {:ok, _pid} = Skillbook.start_link(book)
      iex> model = Model.Function.new(fn messages, _options ->
      ...>   case List.last(messages) do
      ...>     %{role: :user} ->
      ...>       %{tool_calls: [%{name: "memory__save", arguments: %{content: "Likes tea"}}]}
      ...>
      ...>     %{role: :tool, content: "ok\n" <> _saved} ->
      ...>       "I will remember it."
      ...>   end
      ...> end)
      iex> options = [model: model, protocol: :tools]
      iex> {:ok, result} = Agent.run(:agent_tools, "Remember that I like tea.", options)
      iex> Enum.map(result.transcript.messages, & &1.kind)
      [:prompt, :input, :reply, :result, :reply]

  The tools stay the same for the whole conversation, as the system prompt does. Commands that are
  added later, or that are no tools for lack of room, run through the tool `run_command`. If an
  entry is gone when a conversation is continued, its tools are made again.

  The calls of a reply run in order. Those that follow each other and only read
  (`Skillbook.Entry.effect/1`) run at the same time, at most eight, within the book's and the
  skills' `max_running`. The results come back in the order of the calls; the first line of each
  is its status, as in a report. A reply may have 100 calls. The last call of a reply that reached
  its limit of tokens does not run, since it may be incomplete.

  A model may use both: `cmd` blocks of a model with tools run, and so do tool calls of one
  without them. A conversation can be continued with the other protocol.

  ## Turns

  A turn is one call of the model and the commands of its reply. Each turn takes a new view of the
  book and uses it to its end. The system prompt stays the same for the whole conversation, so the
  model's server can cache it. Changes of skills are sent as a message (`Skillbook.changes/2`).

  The text of a skill is sent once. If it is unchanged and still in the conversation, the report
  refers to the earlier message instead.

  An unclosed block of a reply does not run, and the report says so. If the connection breaks
  during a reply, or the server reports that it is overloaded or has failed, its closed blocks run
  and the model is asked to continue from its last words. The text of the result has all parts.
  The third break in a row ends the run with the error.

  A reply may contain text that only looks like commands (see `:notes` of `Skillbook.Report`). If
  such a reply has no commands, and no reply before it had any, the model gets a note and another
  turn, once per run. A reply without any text or command gets a note too; if the next one is
  empty as well, the run ends as `:empty`.

  If a call waits for an approval, the model is asked once more, to tell the user. Commands of
  that reply are skipped, and the run ends as `:pending`.

  ## Events

  `:on_event` receives these events. During a turn, in this order:

    * `{:turn, number}` - the model is called
    * `{:retry, retry}` - a call failed and is repeated, see `t:Skillbook.Model.retry/0`
    * `{:text, text}` - more text for the user, without command blocks. The joined text does not
      depend on the chunks in which the reply arrived
    * `{:tool_call, piece}` - more of a tool call, a `t:Skillbook.Model.tool_call_piece/0`, if the
      model streams them
    * `{:command, line}` - a command whose line is complete; for a tool call, when the reply is
    * `{:usage, usage}` - the tokens of the turn, see `t:Skillbook.Model.usage/0`, and whether
      they are `:estimated`
    * `{:result, result}` - the result of a command, a `Skillbook.Result`
    * `{:incomplete, lines}` - the commands of an unclosed block, which do not run
    * `{:note, text}` - the model is told that text which looks like commands did not run
    * `{:repeated, text}` - the model is told that it repeats commands whose results are the same
    * `{:invalid_output, text}` - the model is told that its answer does not match `:output`
    * `{:empty, text}` - the model is told that its reply was empty
    * `{:cut_off, reason}` - the reply is incomplete: `:length`, it reached its limit of tokens;
      `:filtered`, the server withheld the rest; `:broken`, the connection broke
    * `{:handed_over, %{from: id, to: id, reason: text}}` - another profile leads the conversation
      from the next turn on, see `hand_over/3`
    * `{:transcript, transcript}` - the conversation, including this turn

  Whenever a message is added to the conversation, `{:message, message}` has the
  `Skillbook.Transcript.Message`; `Skillbook.Transcript.Log` writes these to a file.

  Between turns:

    * `{:preloaded, %{picks: picks, loaded: names, left_out: names}}` - skills were loaded for the
      input, before the first turn: what the router picked, the entries whose pages the model
      gets, and those that did not fit
    * `{:context, text}` - the message with the application's sections, before the first turn
    * `{:news, text}` - the message to the model about changed skills
    * `{:compacted, %{messages: count, restored: names, left_out: names, summary: text}}` - old
      messages were removed to save room: their number, the skills that were sent again, those
      that were not, and the summary, or `nil`

  While `agent.dispatch` runs, `{:agent, id, event}` carries the events of the dispatched agent.
  It is sent from the process of that command.
  """

  alias Skillbook.Agent.{Leader, Loop, Result, Settings, SkillsRead}
  alias Skillbook.Model.Content
  alias Skillbook.Support.{Arguments, Options}
  alias Skillbook.{AgentError, Book, Context, HandOverError, Transcript, View}
  alias Skillbook.Transcript.Message

  @doc """
  Sends `input` to a model on behalf of a profile, and runs turns until the model has answered.

  The input is text, or a list of texts and `Skillbook.Model.Media`: images, files and audio. One
  that the model does not take, or that is over its limits, is an error, and the conversation
  stays without it.

  The options of the book's `:agent` are the defaults of these:

      {Skillbook, name: MyApp.Skills, agent: [model: model, chat: [temperature: 0.2]]}

      {:ok, result} = Skillbook.Agent.run(MyApp.Skills, "What is due today?", profile: "ann")

  It runs in the calling process. If that process exits, the request and the commands stop too.
  Returns `{:ok, result}` for a run that ended by itself or at a limit; `:status` of the
  `Skillbook.Agent.Result` tells how. Returns `{:error, %Skillbook.AgentError{}}` if the model
  failed; it has the conversation up to then. Wrong options raise `Skillbook.OptionError` before
  the model is called.

  ## Options

    * `:model` - the model, for example a `Skillbook.Model.OpenAI`. Required, here or in the
      book's `:agent`
    * `:profile` - a profile, or the id of one of the book's profiles, which is read again for
      each turn; not beside a view. Default: `"default"`
    * `:transcript` - the `Skillbook.Transcript` to continue. If it belongs to another profile id,
      `Skillbook.TranscriptError` is raised. Texts of skills that the profile may no longer see
      are removed from it
    * `:system` - text to put before the skills in the system prompt of a new conversation
    * `:prompt` - options of `Skillbook.prompt/2`. Without `:messages` and `:nearest`, the first
      input of the conversation is the message to which the entries of a too long prompt are near
    * `:chat` - options of `Skillbook.Model.chat/4`, for example `[temperature: 0.2]`
    * `:grammar` - options of `Skillbook.Grammar.gbnf/2`, for example `[]`. The grammar of each
      turn's view is sent with the request, for servers that support grammars. Default: `nil`,
      none
    * `:protocol` - `:blocks`, `:tools` or `:auto`: see [Protocols](#module-protocols). `:auto`
      means `:tools` for a model whose module says that it takes them
      (`c:Skillbook.Model.tools?/1`), unless there is a `:grammar`. Default: `:auto`
    * `:tools` - `:names`, `:limit`, `:form` and `:max_tokens` of `Skillbook.Tools.list/2`, for
      `protocol: :tools`. Over the limit, the tools nearest to the first input of the conversation
      stay. Default: `[form: :auto]`
    * `:hand_over` - the ids of the profiles that the conversation may be handed over to, see
      `hand_over/3`. Default: `[]`, none
    * `:leader` - the id of the profile that leads the conversation until it is handed over.
      Default: `nil`, the profile of the run
    * `:preflight` - options of `Skillbook.Preflight.run/3`, or `false`: loads the skills that
      match `input` before the model reads it, and those that are proactive for the profile.
      Default: `nil`, as the book and the profile say. Dispatched agents and runs inside handlers
      load none
    * `:sections` - sections of the application, see `Skillbook.Prompt.Sections`; `[]` for none.
      Default: `nil`, those of the book. Dispatched agents, runs inside handlers and workflows of
      prose have none
    * `:assigns`, `:ask` - as of `Skillbook.run/3`, for the commands of all turns
    * `:commands` - other options of `Skillbook.run/3`, for example `[timeout: 5_000]`
    * `:on_event` - a function that is called with each event, or a process that receives
      `{:skillbook_agent, pid, event}`, where `pid` is the process of the run
    * `:output` - the form of the answer: a JSON schema of an object, as of
      `Skillbook.Model.complete_object/4`, or a module that uses `Skillbook.Skill`, whose flags
      are the fields. The answer is checked, repaired once by the model, and `:output` of the
      result has it. Default: `nil`, text
    * `:durable` - whether another process or node continues the run if this one ends; see
      `Skillbook.Agent.Runs`. `true` needs a book with the option `:durable`. A text is the `:ref`
      that the run gets; if its model fails, it is `:failed` and can be continued. Default: `nil`,
      as the book says, and `false` inside of handlers
    * `:conversation` - the id under which a `Skillbook.Conversation` finds a durable run.
      Default: `nil`
    * `:max_turns` - how often the model may be called. Default: 20
    * `:max_time` - milliseconds for the whole run. Default: 600,000
    * `:max_tokens` - tokens of all prompts and replies, as counted by the model or else
      estimated. Checked between turns. Default: `nil`, no limit
    * `:max_cost` - what all calls may cost, by the book's `:prices`. Checked between turns.
      Default: `nil`, no limit
    * `:max_repeats` - how often in a row one command may fail with the same error, and how many
      replies in a row may run commands whose results are the same. After that many the model is
      told, and the next such reply ends the run. Default: 3
    * `:max_context` - tokens of the conversation with its tools, as the model's server counts
      them, or else estimated. Above it, old messages are removed with `compact/2` down to half of
      it, and the skills read in them are restored in up to a quarter of it. Default: `nil`,
      nothing is removed unless the server refuses the conversation as too long
    * `:summary` - whether a model sums up the messages that are removed: `false`, `true`, or its
      options `:model`, `:prompt` and `:max_tokens`; see
      [conversations](docs/conversations.md#sum-up-what-is-left-out). Default: `nil`, they are
      dropped
    * `:max_depth` - how many levels of agents `agent.dispatch` may nest, 0 for none. Default: 1
    * `:depth` - the level of this run, for handlers. Default: 0
    * `:skill` - the name under which the costs are counted, for handlers that start runs.
      Default: `nil`
    * `:parent` - the budget of the run around this one, from `context.agent.options`. Handlers
      that start runs pass it on
    * `:clock` - a function that returns the current time. Default: `&DateTime.utc_now/0`

  Dispatched agents count toward `:max_turns`, `:max_time`, `:max_tokens` and `:max_cost` of the
  run that dispatched them.
  """
  @spec run(Skillbook.view_or_book(), Skillbook.Model.content(), Skillbook.options()) ::
          {:ok, Result.t()} | {:error, AgentError.t()}
  def run(view_or_book, input, options \\ []) do
    function = "Skillbook.Agent.run/3"
    Content.check!(function, :input, input)
    {view, rest} = View.from(view_or_book, options, function)
    rest = Settings.with_book(rest, Book.of!(view))
    Loop.run(view, profile(view_or_book, options), input, rest)
  end

  defp profile(%View{profile: profile}, _options), do: profile
  defp profile(_book, options), do: Keyword.get(Options.keywords(options), :profile, "default")

  @doc """
  Hands the conversation of a handler's run over to another profile, for a reason.

  The command `agent.hand_over` calls it too. The result of the handler has to be the one that it
  returns, or to have its `:metadata`. The profile leads the conversation from the next turn on:
  with its prompt, skills and tools, and the rights that it and the profile of the run both have.

  Returns a `Skillbook.HandOverError` if the profile is not in `:hand_over` of the run, or the run
  was handed over five times already.

      def execute(%{"order" => _id}, context),
        do: Skillbook.Agent.hand_over(context, "returns", "Wants to return an order")
  """
  @spec hand_over(Context.t(), String.t(), String.t()) ::
          {:ok, Skillbook.Result.t()} | {:error, HandOverError.t()}
  def hand_over(context, profile, reason \\ "") do
    types = [context: {Context, context}, profile: {:text, profile}, reason: {:text, reason}]
    Arguments.check!("Skillbook.Agent.hand_over/3", types)
    Leader.hand_over(context, profile, reason)
  end

  @doc """
  Removes the oldest messages of a conversation that has more than `max_tokens` tokens, as its
  model's server counted them, or else estimated.

  A reply is removed together with the report of its commands. The system prompt, the last input
  and the last exchange always stay, so the conversation may remain larger than `max_tokens`. A
  note tells the model that messages are missing. The skills read in the removed messages are
  added to `:left_out`, for `rehydrate/3`.
  """
  @spec compact(Transcript.t(), pos_integer()) :: Transcript.t()
  defdelegate compact(transcript, max_tokens), to: SkillsRead

  @doc """
  Returns the shortest text that restores the skills that were read in a conversation and are no
  longer in it.

  Skills are read again through the view; a skill that the view does not show is neither restored
  nor named. The most recent come first.

  ## Options

    * `:max_tokens` - the limit of the text. Skills that do not fit are only named. Default: 4,000

  ## Result

  A map:

    * `:text` - the text for the model, empty if there is nothing to restore
    * `:activations` - the restored skills, for the `Skillbook.Transcript.Message` with the text
    * `:left_out` - the names of the skills that did not fit

  ## Examples

      iex> folder = Path.join(System.tmp_dir!(), "skillbook_rehydrate")
      iex> File.mkdir_p!(folder)
      iex> page = "---\\nname: haiku\\ndescription: Haiku\\n---\\nThree lines.\\n"
      iex> File.write!(Path.join(folder, "haiku.md"), page)
      iex> {:ok, catalog} = Skillbook.Catalog.load([folder])
      iex> view = Skillbook.View.all(catalog)
      iex> read = %{name: "haiku", hash: "", command: "haiku", answer: ""}
      iex> transcript = %Skillbook.Transcript{profile: "", left_out: [read]}
      iex> Skillbook.Agent.rehydrate(view, transcript).text
      "You read this earlier; its current text:\\n\\n[1] get_skill: haiku\\nok\\n  Three lines."
      iex> Skillbook.Agent.rehydrate(view, transcript, max_tokens: 10).text
      "You also read these, but they do not fit here: haiku. `get_skill: NAME` reads one again."
  """
  @spec rehydrate(Skillbook.view_or_book(), Transcript.t(), Skillbook.options()) :: %{
          text: String.t(),
          activations: [Message.activation()],
          left_out: [String.t()]
        }
  def rehydrate(view_or_book, transcript, options \\ []) do
    type = [transcript: {Transcript, transcript}]
    {view, options} = View.from(view_or_book, options, "Skillbook.Agent.rehydrate/3", type)
    SkillsRead.rehydrate(view, transcript, Settings.rehydration!(options))
  end
end
