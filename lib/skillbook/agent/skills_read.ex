defmodule Skillbook.Agent.SkillsRead do
  @moduledoc false
  # What a conversation still holds of the skills that were read in it: so that nothing is sent twice, and that what is left
  # out can be brought back.

  alias Skillbook.Reply.Pipeline
  alias Skillbook.Transcript.Message
  alias Skillbook.{Command, Entry, Report, Result, Transcript, View}

  @shown 80
  @left_out "(Earlier messages of this conversation were left out to save room.)"
  @withdrawn "(What stood here held a text that has changed, or can no longer be read. The commands that it answered have run.)"

  # Answers

  @doc """
  The results as the conversation needs them, and the activations of those that go into it whole: an answer that is in it
  already is pointed to.
  """
  @spec results([Result.t()], Transcript.t()) :: {[Result.t()], [Message.activation()]}
  def results(results, transcript) do
    {results, {_present, new}} =
      Enum.map_reduce(results, {Transcript.present(transcript), []}, fn result, {present, new} ->
        activations = activations(result)

        case activations != [] && pointer(activations, result, present) do
          pointer when is_binary(pointer) -> {%{result | content: pointer}, {present, new}}
          _ -> {result, {present ++ activations, new ++ activations ++ parts(result)}}
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

  # They say whose texts a report holds; they are nothing to point to, nor to restore.
  defp parts(%Result{metadata: metadata} = result) do
    for part <- metadata[:parts] || [],
        do: %{
          name: part.name,
          hash: Message.part(part.hash),
          command: line(result.command),
          answer: ""
        }
  end

  defp pointer(activations, result, present) do
    place =
      Enum.find(present, &(&1.answer == hd(activations).answer)) ||
        only_text(activations, present)

    if place && Enum.all?(activations, &above?(&1, present)) do
      pointer = "The same is above, in the answer to `#{place.command}`; it is unchanged."
      if String.length(pointer) < String.length(result.content), do: pointer
    end
  end

  defp above?(activation, present),
    do: Enum.any?(present, &(&1.name == activation.name and &1.hash == activation.hash))

  # An answer that is nothing but the entry's text is above wherever that text is.
  defp only_text([%{hash: hash, answer: hash} = activation], present),
    do: Enum.find(present, &(&1.name == activation.name and &1.hash == hash))

  defp only_text(_activations, _present), do: nil

  defp line(command) do
    line = command |> String.split("\n", parts: 2) |> hd() |> String.replace("`", "'")
    if String.length(line) > @shown, do: String.slice(line, 0, @shown) <> " …", else: line
  end

  # Room

  @doc "The conversation without its oldest messages, if it has more tokens."
  @spec compact(Transcript.t(), pos_integer()) :: Transcript.t()
  def compact(transcript, max_tokens) do
    tokens = Transcript.tokens(transcript)
    if tokens <= max_tokens, do: transcript, else: drop(transcript, tokens - max_tokens)
  end

  # Whole exchanges are left out, so that no report stands without the reply that it answers. What the user said last and the
  # last exchange stay.
  defp drop(transcript, too_many) do
    {head, messages} = Enum.split_while(transcript.messages, &(&1.kind == :prompt))
    {old_notes, messages} = Enum.split_while(messages, &(&1.kind == :note))
    exchanges = exchanges(messages)
    last_input = exchanges |> Enum.reverse() |> Enum.find(&(hd(&1).kind == :input))
    kept = [last_input, List.last(exchanges)]
    size = fn messages -> messages |> Enum.map(&Transcript.estimate(&1.content)) |> Enum.sum() end

    {exchanges, _left} =
      Enum.map_reduce(
        exchanges,
        too_many - size.(old_notes) + Transcript.estimate(@left_out),
        fn exchange, left ->
          if left <= 0 or exchange in kept,
            do: {{:keep, exchange}, left},
            else: {{:drop, exchange}, left - size.(exchange)}
        end
      )

    dropped = for {:drop, exchange} <- exchanges, message <- exchange, do: message

    if dropped == [] do
      transcript
    else
      note = %Message{kind: :note, content: @left_out, at: List.last(dropped).at}
      kept = for {:keep, exchange} <- exchanges, message <- exchange, do: message

      gone =
        (old_notes ++ dropped)
        |> Enum.flat_map(& &1.activations)
        |> Enum.reject(&Message.part?/1)
        |> Enum.reverse()

      left_out = Enum.uniq_by(gone ++ transcript.left_out, & &1.name)
      %{transcript | messages: head ++ [note | kept], left_out: left_out}
    end
  end

  # What the user said, with what was told along with it; or a reply with what came of it.
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

  @doc "What `Skillbook.Agent.rehydrate/3` gives."
  @spec rehydrate(View.t(), Transcript.t(), non_neg_integer()) :: %{
          text: String.t(),
          activations: [Message.activation()],
          left_out: [String.t()]
        }
  def rehydrate(view, transcript, max_tokens) do
    present =
      for activation <- Transcript.present(transcript),
          not Message.part?(activation),
          do: activation.name

    present = MapSet.new(present)
    wanted = transcript |> Transcript.activations() |> Enum.reject(&(&1.name in present))

    {results, left_out, _room} =
      Enum.reduce(wanted, {[], [], max_tokens}, fn %{name: name}, {results, left_out, room} ->
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

    results = Enum.reverse(results)
    left_out = Enum.reverse(left_out)

    %{
      text:
        [restored(results), unrestored(left_out)] |> Enum.reject(&(&1 == "")) |> Enum.join("\n\n"),
      activations: Enum.flat_map(results, &activations/1),
      left_out: left_out
    }
  end

  # A name that the view does not show is passed over: it is as if it had never been there.
  defp read(view, name) do
    with {:ok, %{name: ^name}} <- View.fetch(view, name),
         [%Result{status: :help} = result] <-
           Pipeline.commands(view, ["get_skill: " <> Command.word(name)], max_result: :infinity) do
      result
    else
      _ -> nil
    end
  end

  defp restored([]), do: ""

  defp restored(results),
    do: "What you read before, as it is now:\n\n#{%Report{results: results}}"

  defp unrestored([]), do: ""

  defp unrestored(names) do
    "You also read, and there is no room for it here: #{Enum.join(names, ", ")}. `get_skill: NAME` reads it again."
  end

  @doc "The conversation with what can be restored in its note, and what `rehydrate/3` gave."
  @spec restore(Transcript.t(), View.t(), non_neg_integer()) :: {Transcript.t(), map()}
  def restore(transcript, view, max_tokens) do
    restored = rehydrate(view, transcript, max_tokens)

    messages =
      Enum.map(transcript.messages, fn
        %{kind: :note, content: @left_out} = note when restored.text != "" ->
          %{
            note
            | content: @left_out <> "\n\n" <> restored.text,
              activations: restored.activations
          }

        message ->
          message
      end)

    {%{transcript | messages: messages}, restored}
  end

  # Access

  @doc """
  The conversation without the texts of entries that the view does not show; of those whose text is another now as well, if
  it is not known on whose behalf they were read.
  """
  @spec withdraw(Transcript.t(), View.t(), known :: boolean()) :: Transcript.t()
  def withdraw(transcript, view, known) do
    messages =
      Enum.map(transcript.messages, fn message ->
        if Enum.all?(message.activations, &shown?(&1, view, known)),
          do: message,
          else: %{message | content: @withdrawn, activations: []}
      end)

    # These are names only.
    %{
      transcript
      | messages: messages,
        left_out: Enum.filter(transcript.left_out, &shown?(&1, view, true))
    }
  end

  defp shown?(%{name: name, hash: hash}, view, known) do
    # An alias of that name is another entry.
    case View.fetch(view, name) do
      {:ok, %Entry{name: ^name} = entry} ->
        now = Entry.activation(entry).hash
        known or hash in [now, Message.part(now)]

      _ ->
        false
    end
  end
end
