defmodule Skillbook.Model.ConversationTest do
  # Conversations of twenty inputs through the model of each vendor, with faults, while skills are
  # added, changed and removed. The server checks each request by the vendor's types, and that the
  # vendor's data of all answers comes back.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.Agent
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Vendors

  @moduletag :tmp_dir
  @key "sk-test-0123456789abcdef"
  @usage %{prompt: 1_000, completion: 20, cached: 900, written: 50}

  # The answers to each of the inputs. A fault comes before the answer that follows it.
  defp answers(protocol) do
    long = %{text: for(n <- 1..30, do: "This is sentence #{n} of a longer answer. ")}

    for input <- 1..20 do
      case input do
        2 -> [call(protocol, ["haiku"]), text(2)]
        4 -> [call(protocol, ["haiku", "tasks"]), text(4)]
        6 -> [failure(429, "slow", [["retry-after", "0"]]), text(6)]
        8 -> [failure(529, "Overloaded"), failure(503, "down"), text(8)]
        10 -> [Map.put(answer([long]), :cut, 4_000), text(10)]
        11 -> [answer([], insert: [[0, "data: {\"error\": \"oh\"}\n\n"]]), text(11)]
        12 -> [answer([text_part(12)], finish: "length")]
        14 -> [answer([%{refusal: ["I cannot help with that."]}], finish: "filtered")]
        16 -> [call(protocol, ["haiku"]), call(protocol, ["tasks", "haiku"]), text(16)]
        19 -> [Map.merge(text(19), %{piece: 7, unknown: true})]
        _ -> [text(input)]
      end
    end
    |> List.flatten()
  end

  defp answer(parts, fields \\ []), do: Vendors.answer(parts, [usage: @usage] ++ fields)
  defp text(number), do: answer([text_part(number)])
  defp text_part(number), do: %{text: ["This is ", "answer #{number}."]}

  defp failure(status, message, headers \\ []),
    do: %{status: status, error: %{message: message}, headers: headers}

  defp call(:blocks, paths) do
    lines = Enum.map_join(paths, "\n", &"get_skill: #{&1}")
    answer([%{text: ["I look.\n\n```cmd\n", lines, "\n```\n"]}])
  end

  # With thoughts, whose signatures have to come back.
  defp call(:tools, paths) do
    thought = %{thought: "I should look.", signature: Base.encode64("signed #{paths}")}

    calls = for path <- paths, do: {"get_skill", ["{\"pa", "th\": ", "\"#{path}\"}"]}

    answer([thought, %{text: ["I look."]} | calls])
  end

  @haiku "---\nname: haiku\ndescription: Short poems\n---\n"

  # Before these inputs skills change.
  defp change(folder, 3), do: write(folder, %{"tea.md" => skill("tea", "Tea", "Steep it.")})
  defp change(folder, 5), do: write(folder, %{"haiku.md" => @haiku <> "Three short lines.\n"})
  defp change(folder, 7), do: write(folder, %{"tea.md" => skill("tea", "Green tea", "Cooler.")})
  defp change(folder, 9), do: write(folder, %{"rain.md" => skill("rain", "Rain", "Listen.")})
  defp change(folder, 15), do: File.rm!(Path.join(folder, "tea.md"))
  defp change(folder, 18), do: File.rm!(Path.join(folder, "old.md"))
  defp change(_folder, _input), do: nil

  defp skill(name, description, text),
    do: "---\nname: #{name}\ndescription: #{description}\n---\n#{text}\n"

  # While the first turn of this input runs, a skill is removed.
  defp removing(book, folder, 16) do
    fn
      {:turn, 2} ->
        File.rm!(Path.join(folder, "rain.md"))
        Skillbook.reload(book)

      event ->
        send(self(), {:event, event})
    end
  end

  defp removing(_book, _folder, _input), do: &send(self(), {:event, &1})

  defp converse(vendor, protocol, folder) do
    old = skill("old", "Of old", "As ever.")
    write(folder, %{"haiku.md" => @haiku <> "Three lines.\n", "old.md" => old})
    book = book(sources: [folder], builtins: true, watch: false, store: ":memory:")
    :telemetry.listen(book)
    answers = answers(protocol)
    # Only the tools' answers have data of the vendor.
    script = Vendors.start(vendor, answers, keeps: protocol == :tools, key: @key)
    model = Vendors.model(script, sleep: fn _ -> :ok end, key: fn -> @key end)

    results =
      Enum.scan(1..20, nil, fn input, before ->
        if change(folder, input), do: Skillbook.reload(book)

        {:ok, result} =
          Agent.run(book, "Input #{input}: what do you say?",
            model: model,
            protocol: protocol,
            transcript: before && before.transcript,
            on_event: removing(book, folder, input)
          )

        result
      end)

    record = Vendors.record(script)
    assert {vendor, protocol, record["refused"]} == {vendor, protocol, []}
    assert length(record["requests"]) == length(answers)

    # Keys are in one order in all requests, also in those of calls and schemas.
    for {text, body} <- Enum.zip(record["bodies"], record["requests"]),
        do: assert(text == JSON.encode(body))

    %{book: book, results: results, requests: record["requests"]}
  end

  # The prompt as the vendor's cache reads it: tools, then the system prompt, then each block of
  # the messages. Marks for the cache are no part of it.
  defp prompt("anthropic", body) do
    blocks =
      for %{"role" => role, "content" => blocks} <- body["messages"],
          block <- blocks,
          do: [role, Map.delete(block, "cache_control")]

    system = Enum.map(body["system"], &Map.delete(&1, "cache_control"))
    tools = body["tools"] && Enum.map(body["tools"], &Map.delete(&1, "cache_control"))
    written([tools, system | blocks])
  end

  defp prompt("openai", body), do: written([body["tools"] | body["messages"]])

  defp prompt("responses", body),
    do: written([body["tools"], body["instructions"] | body["input"]])

  defp prompt("gemini", body),
    do: written([body["systemInstruction"], body["tools"] | body["contents"]])

  defp written(parts), do: Enum.map_join(parts, "\n", &JSON.encode/1)

  # The prompts that do not begin with the whole prompt before them, and that.
  defp broken(prompts) do
    for [before, prompt] <- Enum.chunk_every(prompts, 2, 1, :discard),
        not String.starts_with?(prompt, before),
        do: {before, prompt}
  end

  for vendor <- Vendors.all(), protocol <- [:blocks, :tools] do
    @tag vendor: vendor, protocol: protocol
    test "twenty inputs through #{vendor} with #{protocol}", context do
      %{vendor: vendor, protocol: protocol, tmp_dir: folder} = context
      run = converse(vendor, protocol, folder)

      statuses = Enum.map(run.results, & &1.status)
      # A length stop and a refusal.
      assert for(
               {status, input} <- Enum.with_index(statuses, 1),
               status != :done,
               do: {input, status}
             ) ==
               [{12, :cut_off}, {14, :cut_off}]

      for {result, input} <- Enum.with_index(run.results, 1),
          input not in [10, 12, 14],
          do: assert(result.text =~ "This is answer #{input}.")

      assert Enum.at(run.results, 13).text == "I cannot help with that."

      # The tokens of the server's cache reach the run and telemetry.
      assert Enum.at(run.results, 0).usage.cached_tokens == 900
      written = if vendor == "gemini", do: 0, else: 50
      assert Enum.at(run.results, 1).usage.cache_write_tokens == 2 * written

      assert_receive {[:skillbook, :model, :stop], _,
                      %{usage: %{cached_tokens: 900}, answered_by: "model-of-the-server"}}

      # No event of telemetry or of the run has the key, and no conversation.
      {:messages, messages} = Process.info(self(), :messages)
      assert length(messages) > 100
      refute inspect(messages, limit: :infinity, printable_limit: :infinity) =~ @key
      refute Skillbook.Transcript.to_json(List.last(run.results).transcript) =~ @key

      # The prompt of each request begins with the whole prompt of the one before. The exception:
      # a skill of the prompt is gone when a run begins. It may be hidden now, so the prompt is
      # made again. Those of the inputs 15 and 16 were only in the news.
      prompts = Enum.map(run.requests, &prompt(vendor, &1))

      renewed =
        for {before, prompt} <- broken(prompts),
            input <- 1..20,
            said = "Input #{input}: what do you say?",
            prompt =~ said and not (before =~ said),
            do: input

      assert renewed == [18]
      assert hd(prompts) =~ "Of old"
      refute List.last(prompts) =~ "Of old"

      # The model was told of each change, behind the part that stays the same.
      last = List.last(prompts)
      for news <- ["tea", "rain", "haiku"], do: assert(last =~ news)
      figures(vendor, protocol, prompts)
    end
  end

  # For docs/models.md: SKILLBOOK_FIGURES=1.
  defp figures(vendor, protocol, prompts) do
    if System.get_env("SKILLBOOK_FIGURES") do
      all = prompts |> Enum.map(&byte_size/1) |> Enum.sum()

      same =
        prompts
        |> Enum.chunk_every(2, 1, :discard)
        |> Enum.map(fn [one, other] -> :binary.longest_common_prefix([one, other]) end)

      IO.puts(
        "| #{vendor} | #{protocol} | #{length(prompts)} | #{byte_size(hd(prompts))} | " <>
          "#{byte_size(List.last(prompts))} | #{all} | #{Enum.sum(same)} | " <>
          "#{Float.round(100 * Enum.sum(same) / (all - byte_size(hd(prompts))), 1)} % |"
      )
    end
  end
end
