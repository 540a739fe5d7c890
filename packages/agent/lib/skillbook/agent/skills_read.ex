defmodule Skillbook.Agent.SkillsRead do
  @moduledoc false
  # Tracks the skill texts in a conversation. Each message has *activations*: the names of the
  # entries whose texts it contains, with hashes of these texts. With them no text is sent twice,
  # the conversation is compacted, skills that were removed are restored, and texts that the
  # profile may no longer see are removed.

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Transcript.Message
  alias Skillbook.{Command, Entry, Executor, Report, Result, Transcript, View}

  @max_command 80
  @left_out "(Earlier messages of this conversation were left out to save room.)"
  @removed "(This message had a text that has changed or can no longer be read. " <>
             "Its commands have run.)"
  @removed_skills "(This message had a text that has changed or can no longer be read.)"

  # Repeated texts

  @doc """
  Replaces results whose text is already in the conversation by a reference to it.

  Returns the results, and the activations of those that stay whole.
  """
  @spec deduplicate([Result.t()], Transcript.t()) :: {[Result.t()], [Message.activation()]}
  def deduplicate(results, transcript) do
    {results, {_present, new}} =
      Enum.map_reduce(results, {Transcript.present(transcript), []}, fn result, {present, new} ->
        activations = activations(result)

        case activations != [] && reference(activations, result, present) do
          reference when is_binary(reference) ->
            {%{result | content: reference}, {present, new}}

          _ ->
            {result, {present ++ activations, new ++ activations ++ parts(result)}}
        end
      end)

    {results, new}
  end

  defp activations(%Result{metadata: %{activates: entries}} = result) do
    answer = Entry.digest(result.content)

    for entry <- entries,
        do: %{name: entry.name, hash: entry.hash, command: line(result.command), answer: answer}
  end

  defp activations(_result), do: []

  # Parts are recorded so that they can be removed; they are never referred to or restored.
  defp parts(%Result{metadata: metadata} = result) do
    for part <- metadata[:parts] || [],
        do: %{
          name: part.name,
          hash: Message.part(part.hash),
          command: line(result.command),
          answer: ""
        }
  end

  defp reference(activations, result, present) do
    earlier =
      Enum.find(present, &(&1.answer == hd(activations).answer)) ||
        same_text(activations, present)

    if earlier && Enum.all?(activations, &present?(&1, present)) do
      text = "The same is above, in the answer to `#{earlier.command}`; it is unchanged."
      if String.length(text) < String.length(result.content), do: text
    end
  end

  defp present?(activation, present),
    do: Enum.any?(present, &(&1.name == activation.name and &1.hash == activation.hash))

  # An answer that is exactly the entry's text matches every message with that text.
  defp same_text([%{hash: hash, answer: hash} = activation], present),
    do: Enum.find(present, &(&1.name == activation.name and &1.hash == hash))

  defp same_text(_activations, _present), do: nil

  defp line(command) do
    line = command |> String.split("\n", parts: 2) |> hd() |> String.replace("`", "'")

    if String.length(line) > @max_command,
      do: String.slice(line, 0, @max_command) <> " …",
      else: line
  end

  # Compaction

  @doc "As `Skillbook.Agent.compact/2`."
  @spec compact(Transcript.t(), pos_integer()) :: Transcript.t()
  def compact(transcript, max_tokens) do
    {transcript, _dropped} = leave_out(transcript, max_tokens, 0)
    transcript
  end

  @doc """
  As `compact/2`, and returns the removed messages too. `room` is for estimated tokens that will
  be added.
  """
  @spec leave_out(Transcript.t(), pos_integer(), non_neg_integer()) ::
          {Transcript.t(), [Message.t()]}
  def leave_out(transcript, max_tokens, room) do
    {tokens, scale} = Transcript.context(transcript)

    if tokens <= max_tokens,
      do: {transcript, []},
      else: drop(transcript, ceil((tokens - max_tokens) / scale) + room)
  end

  # Only whole exchanges are removed, so reports and results follow their reply. The last input
  # and the last exchange stay.
  defp drop(transcript, excess) do
    {head, messages} = Enum.split_while(transcript.messages, &(&1.kind == :prompt))
    {old_notes, messages} = Enum.split_while(messages, &(&1.kind in [:note, :summary]))
    # Only the newest sections of the application apply. They stay.
    {contexts, messages} = Enum.split_with(messages, &(&1.kind == :context))
    {old_contexts, context} = Enum.split(contexts, -1)
    exchanges = exchanges(messages)
    last_input = exchanges |> Enum.reverse() |> Enum.find(&(hd(&1).kind == :input))
    required = [last_input, List.last(exchanges)]
    excess = excess - size(old_notes ++ old_contexts) + Transcript.estimate(@left_out)

    {exchanges, _excess} =
      Enum.map_reduce(exchanges, excess, fn exchange, excess ->
        if excess <= 0 or exchange in required,
          do: {{:keep, exchange}, excess},
          else: {{:drop, exchange}, excess - size(exchange)}
      end)

    case for {:drop, exchange} <- exchanges, message <- exchange, do: message do
      [] ->
        {transcript, []}

      dropped ->
        note = %Message{kind: :note, content: @left_out, at: List.last(dropped).at}
        # The server has counted other messages before these.
        remaining = for {:keep, exchange} <- exchanges, one <- exchange, do: %{one | usage: nil}
        left_out = left_out(old_notes ++ dropped, transcript.left_out)
        messages = head ++ [note | context ++ remaining]
        {%{transcript | messages: messages, left_out: left_out}, old_notes ++ dropped}
    end
  end

  defp size(messages), do: messages |> Enum.map(&Transcript.message_tokens/1) |> Enum.sum()

  # The most recent first.
  defp left_out(dropped, before) do
    dropped
    |> Enum.flat_map(& &1.activations)
    |> Enum.reject(&Message.part?/1)
    |> Enum.reverse()
    |> Enum.concat(before)
    |> Enum.uniq_by(& &1.name)
  end

  # An input with the news beside it, or a reply with its results, report and notes.
  defp exchanges(messages) do
    Enum.chunk_while(
      messages,
      [],
      fn message, exchange ->
        if message.kind in [:input, :reply] and exchange != [],
          do: {:cont, Enum.reverse(exchange), [message]},
          else: {:cont, [message | exchange]}
      end,
      fn
        [] -> {:cont, []}
        exchange -> {:cont, Enum.reverse(exchange), []}
      end
    )
  end

  @doc "As `Skillbook.Agent.rehydrate/3`."
  @spec rehydrate(View.t(), Transcript.t(), non_neg_integer()) :: %{
          text: String.t(),
          activations: [Message.activation()],
          left_out: [String.t()]
        }
  def rehydrate(view, transcript, max_tokens) do
    present =
      for activation <- Transcript.present(transcript),
          not Message.part?(activation),
          into: MapSet.new(),
          do: activation.name

    missing = transcript |> Transcript.activations() |> Enum.reject(&(&1.name in present))
    {results, left_out} = read_all(view, Enum.map(missing, & &1.name), max_tokens)

    %{
      text: texts([restored_text(results), left_out_text(left_out)]),
      activations: Enum.flat_map(results, &activations/1),
      left_out: left_out
    }
  end

  # The results of reading these entries, in order, and the names of those that do not fit.
  defp read_all(view, names, max_tokens) do
    {results, left_out, _room} =
      Enum.reduce(names, {[], [], max_tokens}, fn name, {results, left_out, room} ->
        case read(view, name) do
          nil ->
            {results, left_out, room}

          result ->
            tokens = Transcript.estimate(to_string(%Report{results: [result]}))

            if tokens <= room,
              do: {[result | results], left_out, room - tokens},
              else: {results, [name | left_out], room}
        end
      end)

    {Enum.reverse(results), Enum.reverse(left_out)}
  end

  defp texts(texts), do: texts |> Enum.reject(&(&1 == "")) |> Enum.join("\n\n")

  # A name that the view does not show is skipped, as if it had never been read.
  defp read(view, name) do
    line = "get_skill: " <> Command.word(name)

    with {:ok, %{name: ^name}} <- View.fetch(view, name),
         [%Result{status: :help} = result] <-
           Pipeline.commands(view, [line], max_result: :infinity) do
      result
    else
      _ -> nil
    end
  end

  defp restored_text([]), do: ""

  defp restored_text(results),
    do: "You read this earlier; its current text:\n\n#{%Report{results: results}}"

  defp left_out_text([]), do: ""

  defp left_out_text(names) do
    "You also read these, but they do not fit here: #{Enum.join(names, ", ")}. " <>
      "`get_skill: NAME` reads one again."
  end

  @doc "Adds the text of `rehydrate/3` to the note about removed messages, and returns both."
  @spec restore(Transcript.t(), View.t(), non_neg_integer()) :: {Transcript.t(), map()}
  def restore(transcript, view, max_tokens) do
    restored = rehydrate(view, transcript, max_tokens)

    messages =
      Enum.map(transcript.messages, fn
        %{kind: :note, content: @left_out} = note when restored.text != "" ->
          content = @left_out <> "\n\n" <> restored.text
          %{note | content: content, activations: restored.activations}

        message ->
          message
      end)

    {%{transcript | messages: messages}, restored}
  end

  # Entries that are loaded before the model asks for them

  @doc """
  Reads entries whose current texts are not in the conversation, for a message to the model.

  Returns the text, which is empty if there is none, its activations, and the names of the entries
  that do not fit into `max_tokens`.
  """
  @spec preload(View.t(), Transcript.t(), [String.t()], non_neg_integer()) :: %{
          text: String.t(),
          activations: [Message.activation()],
          left_out: [String.t()]
        }
  def preload(view, transcript, names, max_tokens) do
    present = MapSet.new(Transcript.present(transcript), &{&1.name, &1.hash})

    names =
      for name <- names,
          {:ok, %{name: ^name} = entry} <- [View.fetch(view, name)],
          {name, Entry.activation(entry).hash} not in present,
          do: name

    {results, left_out} = read_all(view, names, max_tokens)

    %{
      text: texts([preloaded_text(view, results), too_long_text(left_out)]),
      activations: Enum.flat_map(results, &activations/1),
      left_out: left_out
    }
  end

  defp preloaded_text(_view, []), do: ""

  defp preloaded_text(view, results) do
    results = Enum.map(results, &marked(&1, view))

    "## Pre-loaded Skills\nThese may help with the message above. You need not read them " <>
      "again.\n\n#{%Report{results: results}}"
  end

  # Nobody asked for it, so its origin is said.
  defp marked(%Result{metadata: %{activates: [%{name: name} | _]}} = result, view) do
    case View.fetch!(view, name) do
      %Entry{trust: :low} -> %{result | content: Executor.low_trust_notice() <> result.content}
      _ -> result
    end
  end

  defp too_long_text([]), do: ""

  defp too_long_text(names) do
    "These may help too, but do not fit here: #{Enum.join(names, ", ")}. " <>
      "`get_skill: NAME` reads one."
  end

  # Hidden texts

  @doc """
  Removes the texts of entries that the view does not show.

  Unless they were read with the rights of the view (`same_profile?`), texts that have changed
  since are removed too.
  """
  @spec remove_hidden(Transcript.t(), View.t(), same_profile? :: boolean()) :: Transcript.t()
  def remove_hidden(transcript, view, same_profile?) do
    messages =
      Enum.map(transcript.messages, fn message ->
        # A summary is in the model's words, also of texts that have changed since.
        same? = same_profile? or message.kind == :summary

        if Enum.all?(message.activations, &visible?(&1, view, same?)),
          do: message,
          else: %{message | content: removed(message), activations: []}
      end)

    # Only names are stored of these, so a changed text does not matter.
    left_out = Enum.filter(transcript.left_out, &visible?(&1, view, true))
    %{transcript | messages: messages, left_out: left_out}
  end

  defp removed(%{kind: kind}) when kind in [:preloaded, :summary], do: @removed_skills
  defp removed(_message), do: @removed

  defp visible?(%{name: name, hash: hash}, view, same_profile?) do
    # An entry with this name as an alias is another entry.
    case View.fetch(view, name) do
      {:ok, %Entry{name: ^name} = entry} ->
        current = Entry.activation(entry).hash
        same_profile? or hash in [current, Message.part(current)]

      _ ->
        false
    end
  end
end
