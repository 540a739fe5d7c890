defmodule Skillbook.Model.PlatformTest do
  # Vertex AI and Bedrock: requests as the vendors' own clients make them, signatures as botocore
  # makes them, streams that botocore reads, and what is wrong with them.
  use ExUnit.Case, async: true

  alias Skillbook.Model
  alias Skillbook.Model.{AWS, EventStream}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.Vendors

  doctest AWS

  @hello [%{role: :system, content: "Be brief."}, %{role: :user, content: "Hello"}]
  @credentials [
    access_key_id: "AKIDEXAMPLE",
    secret_access_key: "secret/+key",
    session_token: "session+token"
  ]

  # {vendor, platform, the name of the model in the request}
  @rows [
    {"anthropic", :vertex, "anthropic.m-v1:0"},
    {"anthropic", :bedrock, "anthropic.m-v1:0"},
    {"gemini", :vertex, "m"}
  ]

  defp ask(vendor, platform, name, answers, fields, options) do
    script = Vendors.start(vendor, answers, [platform: platform] ++ fields)
    options = [model: name, platform: platform, sleep: fn _ -> :ok end] ++ options
    model = Vendors.model(script, options)
    test = self()
    result = Model.chat(model, @hello, [], &send(test, {:text, &1}))
    {result, Vendors.record(script)}
  end

  test "requests are those of the vendor's client, with a key" do
    for {vendor, platform, name} <- @rows do
      answer = Vendors.answer(%{text: ["Hel", "lo"]})
      key = [key: "token-1"]
      right = [key: fn -> "token-1" end]
      {result, record} = ask(vendor, platform, name, [answer], key, right)
      assert {vendor, platform, record["refused"]} == {vendor, platform, []}
      assert {:ok, %{text: "Hello", finish_reason: :stop}} = result
      assert_received {:text, "Hel"}

      wrong = [key: fn -> "token-2" end, retries: 0]
      assert {{:error, error}, _record} = ask(vendor, platform, name, [answer], key, wrong)
      refute inspect(error) =~ "token-2"
      assert Exception.message(error) =~ "401"
    end
  end

  test "a conversation with calls and thoughts goes through each platform" do
    call = {"look", [~s({"a": 1})]}

    for {vendor, platform, name} <- @rows do
      answers = [Vendors.answer(["I look.", call])]
      script = Vendors.start(vendor, answers, platform: platform)
      model = Vendors.model(script, model: name, platform: platform, key: fn -> "token-1" end)
      tool = %Skillbook.Tool{name: "look", description: "Looks", schema: %{"type" => "object"}}
      {:ok, answer} = Model.chat(model, @hello, [tools: [tool]], fn _ -> :ok end)
      assert [%{name: "look", arguments: arguments}] = answer.tool_calls
      assert JSON.decode(arguments) == {:ok, %{"a" => 1}}
      assert Vendors.record(script)["refused"] == []
    end
  end

  test "requests to Bedrock are signed without a key" do
    row = {"anthropic", :bedrock, "anthropic.m-v1:0"}
    {vendor, platform, name} = row
    answer = Vendors.answer("Hello")

    for given <- [@credentials, Map.new(@credentials)] do
      options = [key: nil, credentials: fn -> given end]
      {result, record} = ask(vendor, platform, name, [answer], [key: "signed"], options)
      assert record["refused"] == []
      assert {:ok, %{text: "Hello"}} = result
    end

    wrong = Keyword.put(@credentials, :secret_access_key, "other-secret")
    options = [key: nil, credentials: fn -> wrong end, retries: 0]
    {result, _record} = ask(vendor, platform, name, [answer], [key: "signed"], options)
    assert {:error, error} = result
    refute inspect(error) =~ "other-secret"

    # The token is sent, so a server may repeat it.
    echo = %{status: 403, error: %{type: "permission_error", message: "bad session+token"}}
    options = [key: nil, credentials: fn -> @credentials end, retries: 0]
    {{:error, error}, _record} = ask(vendor, platform, name, [echo], [], options)
    refute inspect(error) =~ "session+token"
    assert Exception.message(error) =~ "bad [key]"

    for {given, reason} <- [
          {nil, "the function in the option :credentials did not return"},
          {[access_key_id: "A"], "the function in the option :credentials did not return"},
          {[access_key_id: "A", secret_access_key: 1], "the function in the option"},
          {@credentials ++ [session_token: nil], nil}
        ] do
      options = [key: nil, credentials: fn -> given end, retries: 0]
      {result, _record} = ask(vendor, platform, name, [answer], [], options)

      case result do
        {:error, error} ->
          assert {error.kind, String.starts_with?(error.reason, reason)} == {:key, true}

        {:ok, _answer} ->
          assert reason == nil
      end
    end
  end

  test "platforms follow from the host of the URL" do
    vertex = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/"
    bedrock = "https://bedrock-runtime.eu-central-1.amazonaws.com"

    for {module, url, platform, path} <- [
          {Model.Anthropic, nil, nil, "/v1/messages"},
          {Model.Anthropic, "https://proxy.example", nil, "/v1/messages"},
          {Model.Anthropic, "https://aiplatform.googleapis.com.evil.example", nil,
           "/v1/messages"},
          {Model.Anthropic, vertex <> "anthropic", :vertex,
           "/v1/projects/p/locations/l/publishers/anthropic/models/a@1:streamRawPredict"},
          {Model.Anthropic, bedrock, :bedrock, "/model/a@1/invoke-with-response-stream"},
          {Model.Anthropic, bedrock <> "/", :bedrock, "/model/a@1/invoke-with-response-stream"},
          {Model.Gemini, vertex <> "google", :vertex,
           "/v1/projects/p/locations/l/publishers/google/models/a%401:streamGenerateContent"},
          {Model.Gemini, nil, nil, "/v1beta/models/a%401:streamGenerateContent"}
        ] do
      given = if url, do: [url: url], else: []
      model = module.new!([model: "a@1"] ++ given)
      assert {url, model.platform, model.url.path} == {url, platform, path}
      # The key of the vendor is not sent to another server.
      assert {url, model.key == nil} == {url, platform != nil}
    end

    model = Model.Anthropic.new!(model: "a", url: bedrock)
    assert AWS.region(model.url) == "eu-central-1"
    assert Model.Anthropic.provider(model) == "aws.bedrock"
    assert Model.Gemini.provider(Model.Gemini.new!(model: "a", url: vertex)) == "gcp.vertex_ai"
    assert Model.Anthropic.provider(Model.Anthropic.new!(model: "a")) == "anthropic"

    assert {:error, error} = Model.Gemini.new(model: "a", platform: :bedrock)

    assert Exception.message(error) ==
             "expected :vertex or nil as the option :platform of a model, got: :bedrock"
  end

  test "Azure is an address of OpenAI's interface" do
    model =
      Model.OpenAI.new!(
        url: "https://mine.openai.azure.com/openai/v1",
        model: "my-deployment",
        key: fn -> "k" end
      )

    assert to_string(model.url) == "https://mine.openai.azure.com/openai/v1/chat/completions"
    url = "https://mine.openai.azure.com/openai/v1"
    assert Model.Responses.new!(url: url, model: "d").url.path == "/openai/v1/responses"
  end

  test "exceptions in a stream of Bedrock are errors" do
    for {text, kind, attempts} <- [
          {"throttlingException: Slow down", :rate_limited, 3},
          {"internalServerException: Oops", :server, 3},
          {"validationException: Too long", :refused, 1}
        ] do
      answer = Vendors.answer("Hello") |> Map.put(:insert, [[1, text]])
      answers = List.duplicate(answer, attempts)
      options = [key: fn -> "token-1" end]
      row = ["anthropic", :bedrock, "anthropic.m-v1:0", answers, [], options]
      assert {{:error, error}, record} = apply(&ask/6, row)
      assert {text, error.kind, record["refused"]} == {text, kind, []}
      assert Exception.message(error) =~ text |> String.split(": ") |> List.last()
    end
  end

  # The stream

  defp message(headers, payload) do
    fields =
      for {name, value} <- headers, into: "" do
        value = if is_binary(value), do: <<7, byte_size(value)::16, value::binary>>, else: <<0>>
        <<byte_size(name), name::binary, value::binary>>
      end

    head = <<byte_size(fields) + byte_size(payload) + 16::32, byte_size(fields)::32>>
    body = <<head::binary, :erlang.crc32(head)::32, fields::binary, payload::binary>>
    <<body::binary, :erlang.crc32(body)::32>>
  end

  defp chunk(text) do
    headers = [{":message-type", "event"}, {"x", true}, {":event-type", "chunk"}]
    message(headers, JSON.encode(%{bytes: Base.encode64(text), p: "abc"}))
  end

  defp feed(state, chunks) do
    Enum.reduce_while(chunks, {:ok, [], state}, fn chunk, {:ok, events, state} ->
      case EventStream.feed(state, chunk) do
        {:ok, more, state} -> {:cont, {:ok, events ++ Enum.map(more, & &1.data), state}}
        failed -> {:halt, failed}
      end
    end)
  end

  test "messages are read in any pieces" do
    data = chunk("one") <> message([{":message-type", "event"}, {":event-type", "ping"}], "{}")
    data = data <> chunk("") <> chunk(String.duplicate("ä", 1000))
    expected = ["one", "", String.duplicate("ä", 1000)]

    for size <- [1, 2, 3, 11, 12, 13, 100, byte_size(data)] do
      pieces = for <<piece::binary-size(size) <- data>>, do: piece
      rest = binary_part(data, byte_size(data), -rem(byte_size(data), size))
      assert {:ok, ^expected, _state} = feed(EventStream.new(), pieces ++ [rest])
    end

    # The end is cut off.
    cut = binary_part(data, 0, byte_size(data) - 1)
    assert {:ok, ["one", ""], _state} = feed(EventStream.new(), [cut])
  end

  test "a damaged message is an error, and never another event" do
    data = chunk("one")

    for place <- 0..(byte_size(data) - 1), bit <- [1, 128] do
      <<before::binary-size(place), byte, rest::binary>> = data
      damaged = <<before::binary, Bitwise.bxor(byte, bit), rest::binary>>
      assert {place, feed(EventStream.new(), [damaged])} == {place, :damaged}
    end

    short = <<15::32, 0::32>>
    assert feed(EventStream.new(), [<<short::binary, :erlang.crc32(short)::32>>]) == :damaged
    large = <<4 * 1024 * 1024 + 1::32, 0::32>>
    assert feed(EventStream.new(), [<<large::binary, :erlang.crc32(large)::32>>]) == :error

    for payload <- ["", "{}", "[]", ~s({"bytes": 1}), ~s({"bytes": "?"})] do
      headers = [{":message-type", "event"}, {":event-type", "chunk"}]
      assert feed(EventStream.new(), [message(headers, payload)]) == :damaged
    end
  end
end
