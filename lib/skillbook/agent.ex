defmodule Skillbook.Agent do
  @moduledoc ~S"""
  Runs a conversation with a model: asks it, runs the commands of its reply, reports their
  results, and repeats until a reply has no commands.

      iex> alias Skillbook.{Agent, Model}
      iex> {:ok, _pid} = Skillbook.start_link(name: :agent_example, store: ":memory:")
      iex> model = Model.Function.new(fn messages, _options ->
      ...>   case List.last(messages).content do
      ...>     "Remember that I like tea." ->
      ...>       "On it.\n\n```cmd\nmemory.save --content \"Likes tea\"\n```"
      ...>
      ...>     "[1] memory.save" <> _report ->
      ...>       "I will remember it."
      ...>   end
      ...> end)
      iex> result = Agent.run(:agent_example, "Remember that I like tea.", model: model)
      iex> {result.status, result.text, result.turns}
      {:done, "I will remember it.", 2}
      iex> Enum.map(result.transcript.messages, & &1.kind)
      [:prompt, :input, :reply, :report, :reply]

  To continue a conversation, pass `result.transcript` as `:transcript` of the next run.

  ## Turns

  A turn is one call of the model and the commands of its reply. Each turn takes a new view of the
  book and uses it to its end. The system prompt stays the same for the whole conversation, so the
  model's server can cache it. Changes of skills are sent as a message (`Skillbook.changes/2`).

  The text of a skill is sent once. If it is unchanged and still in the conversation, the report
  refers to the earlier message instead.

  An unclosed block of a reply does not run, and the report says so. If the connection breaks
  during a reply, its closed blocks run and the model is asked to continue from its last words.
  The third break in a row ends the run with the error.

  A reply may contain text that only looks like commands (see `:notes` of `Skillbook.Report`). If
  such a reply has no commands, and no reply before it had any, the model gets a note and another
  turn, once per run.

  ## Events

  `:on_event` receives these events. During a turn, in this order:

    * `{:turn, number}` - the model is called
    * `{:retry, retry}` - a call failed and is repeated, see `t:Skillbook.Model.retry/0`
    * `{:text, text}` - more text for the user, without command blocks. The joined text does not
      depend on the chunks in which the reply arrived
    * `{:command, line}` - a command whose line is complete
    * `{:usage, usage}` - the `:prompt_tokens` and `:completion_tokens` of the turn, and whether
      they are `:estimated`
    * `{:result, result}` - the result of a command, a `Skillbook.Result`
    * `{:incomplete, lines}` - the commands of an unclosed block, which do not run
    * `{:note, text}` - the model is told that text which looks like commands did not run
    * `{:cut_off, reason}` - the reply is incomplete: `:length`, it reached its limit of tokens;
      `:filtered`, the server withheld the rest; `:broken`, the connection broke
    * `{:transcript, transcript}` - the conversation, including this turn

  Between turns:

    * `{:preloaded, %{picks: picks, loaded: names, left_out: names}}` - skills were loaded for the
      input, before the first turn: what the router picked, the entries whose pages the model
      gets, and those that did not fit
    * `{:news, text}` - the message to the model about changed skills
    * `{:compacted, %{messages: count, restored: names, left_out: names}}` - old messages were
      removed to save room: their number, the skills that were sent again, and those that were not

  While `agent.dispatch` runs, `{:agent, id, event}` carries the events of the dispatched agent.
  It is sent from the process of that command.
  """

  alias Skillbook.Agent.{Loop, Result, SkillsRead}
  alias Skillbook.{Transcript, View}
  alias Skillbook.Transcript.Message

  @doc """
  Sends `input` to a model on behalf of a profile, and runs turns until the model has answered.

  It runs in the calling process. If that process exits, the request and the commands stop too.
  A failure of the model is not raised: see `:status` and `:error` of `Skillbook.Agent.Result`.
  Wrong options raise `Skillbook.OptionError` before the model is called.

  ## Options

    * `:model` - the model, for example a `Skillbook.Model.OpenAI`. Required
    * `:profile` - a profile, or the id of one of the book's profiles. Default: `"default"`
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
    * `:preflight` - options of `Skillbook.Preflight.run/3`, or `false`: loads the skills that
      match `input` before the model reads it, and those that are proactive for the profile.
      Default: `nil`, as the book and the profile say. Dispatched agents and runs inside handlers
      load none
    * `:commands` - options of `Skillbook.run/3`, for example `[assigns: %{user: 1}]`
    * `:on_event` - a function that is called with each event, or a process that receives
      `{:skillbook_agent, pid, event}`, where `pid` is the process of the run
    * `:max_turns` - how often the model may be called. Default: 20
    * `:max_time` - milliseconds for the whole run. Default: 600,000
    * `:max_tokens` - tokens of all prompts and replies, as counted by the model or else
      estimated. Checked between turns. Default: `nil`, no limit
    * `:max_repeats` - how often in a row one command may fail with the same error. Default: 3
    * `:max_context` - estimated tokens of the conversation. Above it, old messages are removed
      with `compact/2` down to half of it, and the skills read in them are restored in up to a
      quarter of it. Default: `nil`, nothing is removed
    * `:max_depth` - how many levels of agents `agent.dispatch` may nest, 0 for none. Default: 1
    * `:depth` - the level of this run, for handlers. Default: 0
    * `:parent` - the budget of the run around this one, from `context.agent.options`. Handlers
      that start runs pass it on
    * `:clock` - a function that returns the current time. Default: `&DateTime.utc_now/0`

  Dispatched agents count toward `:max_turns`, `:max_time` and `:max_tokens` of the run that
  dispatched them.
  """
  @spec run(Skillbook.book(), String.t(), keyword()) :: Result.t()
  def run(book, input, options) when is_binary(input), do: Loop.run(book, input, options)

  @doc """
  Removes the oldest messages of a conversation that has more than `max_tokens` tokens, estimated.

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
  nor named. The most recent come first. Those that do not fit into `max_tokens` are only named.

  Returns a map:

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
      iex> Skillbook.Agent.rehydrate(view, transcript, 1_000).text
      "You read this earlier; its current text:\\n\\n[1] get_skill: haiku\\nok\\n  Three lines."
      iex> Skillbook.Agent.rehydrate(view, transcript, 10).text
      "You also read these, but they do not fit here: haiku. `get_skill: NAME` reads one again."
  """
  @spec rehydrate(View.t(), Transcript.t(), non_neg_integer()) :: %{
          text: String.t(),
          activations: [Message.activation()],
          left_out: [String.t()]
        }
  def rehydrate(view, transcript, max_tokens \\ 4_000),
    do: SkillsRead.rehydrate(view, transcript, max_tokens)
end
