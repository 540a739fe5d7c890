defmodule Skillbook.Model.MediaTest do
  use ExUnit.Case, async: true

  alias Skillbook.Model.{Content, Media, Recording, Script}
  alias Skillbook.Support.JSON
  alias Skillbook.Test.{CloudModel, Vendors}
  alias Skillbook.{Model, ModelError, RecordingError, Transcript}

  doctest Skillbook.Model.Media
  doctest Skillbook.Model.Content

  @bytes "bytes"
  @base64 Base.encode64(@bytes)
  @images ~w(image/jpeg image/png image/gif image/webp)

  defp data(type, name \\ nil), do: Media.new!(type: type, data: @bytes, name: name)
  defp url(type), do: Media.new!(type: type, url: "https://media.example/a?key=secret")

  defp ask(model, messages), do: Model.chat(model, messages, [], fn _text -> :ok end)

  # The parts of the last message of a request.
  defp parts("openai", body), do: List.last(body["messages"])["content"]
  defp parts("responses", body), do: List.last(body["input"])["content"]
  defp parts("anthropic", body), do: List.last(body["messages"])["content"]
  defp parts("gemini", body), do: List.last(body["contents"])["parts"]

  describe "a part" do
    test "is made of a type and of data or a URL" do
      long = "https://a/" <> String.duplicate("x", 8_183)

      for {options, expected} <- [
            {[type: "text/plain", data: "é", name: "a b.txt"], :ok},
            {[type: "image/png", url: "https://a/b?c=d"], :ok},
            {[data: "x"], "a part of a message needs the option :type"},
            {[type: "image/png"],
             "expected bytes, or a URL as :url instead, as the option :data of a part of a " <>
               "message, got: nil"},
            {[type: "image/png", data: "x", url: "https://a"],
             "expected no URL beside :data as the option :url of a part of a message, " <>
               ~s(got: "https://…")},
            {[type: "image/png; q=1", data: "x"],
             ~s(expected a media type such as "image/png" as the option :type of a part of a ) <>
               ~s(message, got: "image/png; q=1")},
            {[type: "image/png", data: ""],
             ~s(expected bytes as the option :data of a part of a message, got: "")},
            {[type: "text/plain", data: <<255>>],
             "expected UTF-8 for the type text/plain as the option :data of a part of a " <>
               ~s(message, got: "other bytes")},
            {[type: "image/png", path: "a.png"],
             "unknown option :path for a part of a message. The options " <>
               "are :type, :data, :url, :name"},
            {[type: "image/png", data: "x", name: "a\nb"],
             "expected one line of at most 255 characters, or nil as the option :name of a " <>
               ~S(part of a message, got: "a\nb")},
            {[type: "image/png", data: "x", name: String.duplicate("é", 256)], :wrong}
          ] do
        case Media.new(options) do
          {:ok, %Media{}} -> assert {options, expected} == {options, :ok}
          {:error, error} when expected == :wrong -> assert error.option == :name
          {:error, error} -> assert Exception.message(error) == expected
        end
      end

      wrong = ["http://a/b", "https://", "https://u:p@a/b", "file:///a", "https://a/ b", long]

      for url <- wrong do
        assert {:error, %{option: :url} = error} = Media.new(type: "image/png", url: url)

        assert Exception.message(error) =~
                 "expected an https URL without a login, of at most 8192 bytes as the option :url"

        refute Exception.message(error) =~ "u:p@"
      end

      assert_raise Skillbook.OptionError, fn -> Media.new!(type: "png", data: "x") end
    end

    test "is short when it is inspected, and shows no bytes and no path" do
      large = Media.new!(type: "image/png", data: String.duplicate("secret", 100_000))
      assert inspect(large) == "#Skillbook.Model.Media<image/png, 600000 bytes>"
      assert inspect(url("image/png")) == "#Skillbook.Model.Media<image/png, from media.example>"
    end

    test "has tokens by its kind and size" do
      sized = &Media.new!(type: &1, data: String.duplicate("a", &2))

      for {content, tokens} <- [
            {sized.("image/png", 1_000_000), 1_600},
            {url("image/png"), 1_600},
            {sized.("application/pdf", 10), 2_000},
            {sized.("application/pdf", 1_000_000), 20_000},
            {url("application/pdf"), 2_000},
            {sized.("audio/mpeg", 2_000_000), 4_000},
            {sized.("text/plain", 400), 100},
            {["abcd", sized.("image/png", 1), "efgh"], 1_602}
          ] do
        assert {content, Content.tokens(content)} == {content, tokens}
        message = %{role: :user, content: List.wrap(content)}
        assert Transcript.message_tokens(message) == tokens + 4
      end
    end
  end

  describe "a request" do
    @pdf %{"filename" => "r.pdf", "file_data" => "data:application/pdf;base64,#{@base64}"}
    @url "https://media.example/a?key=secret"

    # The part of a request, for each interface and kind, by data and by a URL; `nil` is refused.
    @table [
      {"openai", "image/png", :data,
       %{
         "type" => "image_url",
         "image_url" => %{"url" => "data:image/png;base64,#{@base64}"}
       }},
      {"openai", "image/png", :url, %{"type" => "image_url", "image_url" => %{"url" => @url}}},
      {"openai", "application/pdf", :data, %{"type" => "file", "file" => @pdf}},
      {"openai", "application/pdf", :url, nil},
      {"openai", "audio/wav", :data,
       %{"type" => "input_audio", "input_audio" => %{"data" => @base64, "format" => "wav"}}},
      {"openai", "audio/mpeg", :data,
       %{"type" => "input_audio", "input_audio" => %{"data" => @base64, "format" => "mp3"}}},
      {"openai", "audio/wav", :url, nil},
      {"openai", "text/plain", :data, nil},
      {"responses", "image/png", :data,
       %{
         "type" => "input_image",
         "detail" => "auto",
         "image_url" => "data:image/png;base64,#{@base64}"
       }},
      {"responses", "image/png", :url,
       %{"type" => "input_image", "detail" => "auto", "image_url" => @url}},
      {"responses", "application/pdf", :data, Map.put(@pdf, "type", "input_file")},
      {"responses", "application/pdf", :url, %{"type" => "input_file", "file_url" => @url}},
      {"responses", "audio/wav", :data, nil},
      {"responses", "audio/wav", :url, nil},
      {"anthropic", "image/png", :data,
       %{
         "type" => "image",
         "source" => %{"type" => "base64", "media_type" => "image/png", "data" => @base64}
       }},
      {"anthropic", "image/png", :url,
       %{"type" => "image", "source" => %{"type" => "url", "url" => @url}}},
      {"anthropic", "application/pdf", :data,
       %{
         "type" => "document",
         "title" => "r.pdf",
         "source" => %{"type" => "base64", "media_type" => "application/pdf", "data" => @base64}
       }},
      {"anthropic", "application/pdf", :url,
       %{"type" => "document", "source" => %{"type" => "url", "url" => @url}}},
      {"anthropic", "text/plain", :data,
       %{
         "type" => "document",
         "title" => "r.pdf",
         "source" => %{"type" => "text", "media_type" => "text/plain", "data" => @bytes}
       }},
      {"anthropic", "text/plain", :url, nil},
      {"anthropic", "audio/wav", :data, nil},
      {"anthropic", "audio/wav", :url, nil},
      {"gemini", "image/png", :data,
       %{"inlineData" => %{"mimeType" => "image/png", "data" => @base64}}},
      {"gemini", "image/png", :url,
       %{"fileData" => %{"mimeType" => "image/png", "fileUri" => @url}}},
      {"gemini", "application/pdf", :data,
       %{"inlineData" => %{"mimeType" => "application/pdf", "data" => @base64}}},
      {"gemini", "application/pdf", :url,
       %{"fileData" => %{"mimeType" => "application/pdf", "fileUri" => @url}}},
      {"gemini", "audio/mpeg", :data,
       %{"inlineData" => %{"mimeType" => "audio/mp3", "data" => @base64}}},
      {"gemini", "audio/wav", :url,
       %{"fileData" => %{"mimeType" => "audio/wav", "fileUri" => @url}}},
      {"gemini", "video/mp4", :data, nil}
    ]

    test "has each kind and source in the form of its interface" do
      for {vendor, type, source, expected} <- @table do
        media = if source == :url, do: url(type), else: data(type, "r.pdf")
        script = Vendors.start(vendor, [Vendors.answer("Seen.")])
        # Without marks for the cache, which are at the end of a message.
        model = Vendors.model(script, cache: false)
        messages = [%{role: :user, content: ["Look:", media, "What is it?"]}]
        result = ask(model, messages)
        record = Vendors.record(script)
        label = {vendor, type, source}

        if expected do
          assert {^label, {:ok, %{text: "Seen."}}, []} = {label, result, record["refused"]}
          [body] = record["requests"]
          assert [text, sent, question] = parts(vendor, body)
          assert {label, sent} == {label, expected}
          assert {text["text"], question["text"]} == {"Look:", "What is it?"}
        else
          # Before the request.
          assert {^label, {:error, %ModelError{kind: :media}}, []} =
                   {label, result, record["bodies"]}
        end
      end
    end

    # The result of a call with a medium: the part of the request that has it.
    @image %{"inlineData" => %{"mimeType" => "image/png", "data" => @base64}}
    @block %{"type" => "base64", "media_type" => "image/png", "data" => @base64}
    @results [
      {"openai", "m", "image/png",
       [
         %{
           "role" => "tool",
           "tool_call_id" => "c1",
           "content" => ~s(ok\n\n[image: "r.pdf", image/png, 5 bytes])
         },
         %{
           "role" => "user",
           "content" => [
             %{
               "type" => "text",
               "text" => "The images, files and audio of these results, in their order:"
             },
             %{
               "type" => "image_url",
               "image_url" => %{"url" => "data:image/png;base64,#{@base64}"}
             }
           ]
         }
       ]},
      {"openai", "m", "audio/wav", :audio},
      {"responses", "m", "image/png",
       [
         %{
           "type" => "function_call_output",
           "call_id" => "c1",
           "output" => [
             %{"type" => "input_text", "text" => "ok"},
             %{
               "type" => "input_image",
               "detail" => "auto",
               "image_url" => "data:image/png;base64,#{@base64}"
             }
           ]
         }
       ]},
      {"responses", "m", "application/pdf",
       [
         %{
           "type" => "function_call_output",
           "call_id" => "c1",
           "output" => [
             %{"type" => "input_text", "text" => "ok"},
             Map.put(@pdf, "type", "input_file")
           ]
         }
       ]},
      {"anthropic", "m", "image/png",
       [
         %{
           "role" => "user",
           "content" => [
             %{
               "type" => "tool_result",
               "tool_use_id" => "c1",
               "content" => [
                 %{"type" => "text", "text" => "ok"},
                 %{"type" => "image", "source" => @block}
               ]
             }
           ]
         }
       ]},
      {"anthropic", "m", "application/pdf",
       [
         %{
           "role" => "user",
           "content" => [
             %{
               "type" => "tool_result",
               "tool_use_id" => "c1",
               "content" => [
                 %{"type" => "text", "text" => "ok"},
                 %{
                   "type" => "document",
                   "title" => "r.pdf",
                   "source" => %{@block | "media_type" => "application/pdf"}
                 }
               ]
             }
           ]
         }
       ]},
      {"gemini", "gemini-3-pro", "image/png",
       [
         %{
           "role" => "user",
           "parts" => [
             %{
               "functionResponse" => %{
                 "name" => "draw",
                 "id" => "c1",
                 "response" => %{"output" => "ok"},
                 "parts" => [@image]
               }
             }
           ]
         }
       ]}
    ]

    test "has the media of a result where the interface takes them" do
      for {vendor, name, type, expected} <- @results do
        script = Vendors.start(vendor, [Vendors.answer("Seen.")])
        model = Vendors.model(script, cache: false, model: name)
        call = %{id: "c1", name: "draw", arguments: "{}"}
        result = %{role: :tool, id: "c1", name: "draw", error: false}

        messages = [
          %{role: :user, content: "Draw."},
          %{role: :assistant, content: "", tool_calls: [call]},
          Map.put(result, :content, ["ok", data(type, "r.pdf")])
        ]

        result = ask(model, messages)
        record = Vendors.record(script)
        label = {vendor, name, type}
        assert {^label, {:ok, %{text: "Seen."}}, []} = {label, result, record["refused"]}
        [body] = record["requests"]
        sent = body["messages"] || body["input"] || body["contents"]

        if expected == :audio do
          assert [%{"role" => "tool"}, %{"content" => [_text, %{"type" => "input_audio"}]}] =
                   Enum.take(sent, -2)
        else
          assert {label, Enum.take(sent, -length(expected))} == {label, expected}
        end
      end
    end

    test "has them after the results for models of Gemini before 3" do
      result = &%{role: :tool, id: &1, name: "draw", error: false, content: &2}
      messages = [result.("c1", ["ok", data("image/png", "a.png")]), result.("c2", "ok")]
      note = ~s(ok\n\n[image: "a.png", image/png, 5 bytes])

      for name <- ["gemini-1.5-pro", "gemini-2.5-flash"] do
        model = Model.Gemini.new!(model: name, key: nil)
        assert %{"contents" => [%{"parts" => parts}]} = Model.Gemini.body(model, messages, [])

        assert [
                 %{"functionResponse" => %{"response" => %{"output" => ^note}} = first},
                 %{"functionResponse" => %{"response" => %{"output" => "ok"}}},
                 @image
               ] = parts

        refute is_map_key(first, "parts")
      end
    end

    test "keeps the marks of the cache, and names files that have none" do
      for {vendor, content, expected} <- [
            {"anthropic", [data("image/png")], "cache_control"},
            {"anthropic", ["", data("application/pdf")], "document"},
            {"openai", [data("application/pdf")], ~s("filename":"file.pdf")},
            {"responses", [data("application/pdf")], ~s("filename":"file.pdf")},
            {"gemini", ["", data("image/png")], "inlineData"}
          ] do
        script = Vendors.start(vendor, [Vendors.answer("Seen.")])
        messages = [%{role: :system, content: "S"}, %{role: :user, content: content}]
        assert {:ok, _} = ask(Vendors.model(script), messages)
        assert %{"refused" => [], "bodies" => [body]} = Vendors.record(script)
        assert body =~ expected
      end
    end

    test "has the system prompt before the parts, for models without one" do
      script = Vendors.start("openai", [Vendors.answer("Seen.")])
      messages = [%{role: :system, content: "S"}, %{role: :user, content: [data("image/png")]}]
      assert {:ok, _} = ask(Vendors.model(script, system_role: :user), messages)
      assert %{"refused" => [], "requests" => [body]} = Vendors.record(script)

      assert [%{"role" => "user", "content" => [%{"text" => "S"}, %{"type" => "image_url"}]}] =
               body["messages"]
    end

    test "of megabytes arrives whole" do
      bytes = :crypto.strong_rand_bytes(5_000_000)
      script = Vendors.start("openai", [Vendors.answer("Seen.")])
      content = ["Read it.", Media.new!(type: "application/pdf", data: bytes)]
      assert {:ok, _} = ask(Vendors.model(script), [%{role: :user, content: content}])
      assert %{"refused" => [], "requests" => [body]} = Vendors.record(script)

      assert [_, %{"file" => %{"file_data" => "data:application/pdf;base64," <> sent}}] =
               parts("openai", body)

      assert Base.decode64!(sent) == bytes
    end
  end

  describe "what a model does not take" do
    defp refused(model, messages) do
      {:error, %ModelError{text: ""} = error} = Model.check(model, messages)
      assert ask(model, messages) == {:error, error}
      {error.kind, Exception.message(error)}
    end

    @prefix "the model does not take the messages: "

    test "is an error that says what it takes" do
      openai = Model.OpenAI.new!(url: "http://localhost:1", model: "m")
      anthropic = Model.Anthropic.new!(model: "m", key: nil)
      gemini = Model.Gemini.new!(model: "m", key: nil)
      takes = Enum.join(@images, ", ")

      for {model, media, message} <- [
            {anthropic, data("audio/mpeg", "memo.mp3"),
             "expected one of #{takes}, application/pdf, text/plain for " <>
               ~s(Skillbook.Model.Anthropic, got: "memo.mp3", audio/mpeg, 5 bytes in part 2 ) <>
               "of message 2"},
            {openai, url("application/pdf"),
             "expected the data of application/pdf for Skillbook.Model.OpenAI, which takes " <>
               "only #{takes} by a URL, got: application/pdf, from media.example in part 2 of " <>
               "message 2"},
            {gemini, data("video/mp4"),
             "expected one of image/jpeg, image/png, image/webp, image/heic, image/heif, " <>
               "application/pdf, text/plain, audio/wav, audio/mpeg, audio/aiff, audio/aac, " <>
               "audio/ogg, audio/flac for Skillbook.Model.Gemini, got: video/mp4, 5 bytes in " <>
               "part 2 of message 2"},
            {CloudModel.new!(model: "m", key: nil), data("image/png"),
             "expected text alone for Skillbook.Test.CloudModel, got: image/png, 5 bytes in " <>
               "part 2 of message 2"}
          ] do
        messages = [%{role: :system, content: "S"}, %{role: :user, content: ["See", media]}]
        assert refused(model, messages) == {:media, @prefix <> message}
      end
    end

    test "may be limited by options" do
      image = &Media.new!(type: "image/png", data: String.duplicate("x", &1))
      limits = [types: ["image/png"], max_bytes: 10, max_total: 15, max_parts: 2]
      model = Model.OpenAI.new!(url: "http://localhost:1", model: "m", media: limits)
      user = &%{role: :user, content: &1}

      for {messages, expected} <- [
            {[user.([image.(10), image.(5)])], :ok},
            {[user.([image.(5), "a", url("image/png")]), user.([image.(9), image.(1)])], :ok},
            {[user.([data("image/gif")])],
             {:media,
              @prefix <>
                "expected one of image/png for Skillbook.Model.OpenAI, got: image/gif, 5 " <>
                "bytes in part 1 of message 1"}},
            {[user.(["a", image.(11)])],
             {:media,
              @prefix <>
                "expected at most 10 bytes in a part (:max_bytes of :media), got: image/png, " <>
                "11 bytes in part 2 of message 1"}},
            {[user.("a"), user.([image.(1), url("image/png"), image.(1)])],
             {:too_long,
              "the conversation is too long for the model: expected at most 2 images, files " <>
                "and audio in a message (:max_parts of :media), got: 3 in message 2"}},
            {[user.([image.(8)]), user.([image.(8)])],
             {:too_long,
              "the conversation is too long for the model: expected at most 15 bytes of " <>
                "images, files and audio in a request (:max_total of :media), got: 16"}}
          ] do
        if expected == :ok,
          do: assert(Model.check(model, messages) == :ok),
          else: assert(refused(model, messages) == expected)
      end

      none = Model.OpenAI.new!(url: "http://localhost:1", model: "m", media: [types: []])

      assert {:media, @prefix <> "expected text alone for" <> _} =
               refused(none, [user.([image.(1)])])

      for limits <- [[types: "image/png"], [max_bytes: 0], [max: 1], true] do
        assert {:error, error} = Model.Anthropic.new(model: "m", media: limits)

        assert Exception.message(error) ==
                 "expected a list of :types, :max_bytes, :max_total and :max_parts as the " <>
                   "option :media of a model, got: #{inspect(limits)}"
      end
    end

    test "is that of each model of a fallback, and of a recorder" do
      anthropic = Model.Anthropic.new!(model: "m", key: nil)
      function = Model.Function.new(fn _messages, _options -> "Seen." end)
      messages = [%{role: :user, content: [data("audio/wav")]}]
      assert Model.check(function, messages) == :ok
      assert Model.check(Model.Fallback.new!([function]), messages) == :ok

      for model <- [
            Model.Fallback.new!([function, anthropic]),
            Recording.new!(path: "a.json", record: true, model: anthropic)
          ],
          do: assert({:media, _} = refused(model, messages))
    end
  end

  @tag :tmp_dir
  test "a recording has no bytes, and tells other bytes apart", %{tmp_dir: folder} do
    path = Path.join(folder, "a.json")
    messages = &[%{role: :user, content: ["See", &1]}]
    recorder = Recording.new!(path: path, record: true, model: Script.new(["Seen."]))
    assert {:ok, %{text: "Seen."}} = ask(recorder, messages.(data("image/png", "a.png")))
    text = File.read!(path)
    assert text =~ ~S([image: \"a.png\", image/png, 5 bytes] sha256: )
    refute text =~ @base64
    other = Media.new!(type: "image/png", data: "BYTES", name: "a.png")
    assert_raise RecordingError, fn -> ask(Recording.new!(path: path), messages.(other)) end
    recording = Recording.new!(path: path)
    assert {:ok, %{text: "Seen."}} = ask(recording, messages.(data("image/png", "a.png")))
    assert JSON.decode(text) |> elem(0) == :ok
  end
end
