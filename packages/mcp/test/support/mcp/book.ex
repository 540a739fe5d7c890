defmodule Skillbook.Test.MCPBook do
  @moduledoc false
  # The book that MCP's conformance suite finds its tools and prompts in: commands with handlers
  # and pages, as an application would write them.

  alias Skillbook.{Context, MCP, Profile, Result, Skill, Store}

  @image %{type: "image/png", data: "a picture"}
  @sound %{type: "audio/wav", data: "a sound"}
  @document %{
    uri: "test://embedded-resource",
    type: "text/plain",
    data: "This is an embedded resource content."
  }
  @pages Path.expand("pages", __DIR__)
  # With the keywords that the suite looks for.
  @schema %{
    "$schema" => "https://json-schema.org/draft/2020-12/schema",
    "type" => "object",
    "$defs" => %{
      "address" => %{
        "$anchor" => "addressDef",
        "type" => "object",
        "properties" => %{"street" => %{"type" => "string"}, "city" => %{"type" => "string"}}
      }
    },
    "properties" => %{
      "name" => %{"type" => "string"},
      "address" => %{"$ref" => "#/$defs/address"},
      "contactMethod" => %{"type" => "string", "enum" => ["phone", "email"]},
      "phone" => %{"type" => "string"},
      "email" => %{"type" => "string"}
    },
    "allOf" => [%{"anyOf" => [%{"required" => ["phone"]}, %{"required" => ["email"]}]}],
    "if" => %{
      "properties" => %{"contactMethod" => %{"const" => "phone"}},
      "required" => ["contactMethod"]
    },
    "then" => %{"required" => ["phone"]},
    "else" => %{"required" => ["email"]},
    "additionalProperties" => false
  }

  @doc "Starts the book. Its profile `ann` is asked before a command changes something."
  def start(name, options \\ []) do
    [
      name: name,
      sources: [@pages | commands()],
      builtins: false,
      store: ":memory:",
      profiles: [[id: "ann", writes: :ask, skills: :all]]
    ]
    |> Keyword.merge(options)
    |> Skillbook.start_link()
  end

  @doc "The answer to a request of a profile whose client can ask its user."
  def ask(book, profile, method, params) do
    view = Skillbook.view(book, profile)
    context = %MCP.Context{view: view, profile: view.profile, revision: "2026-07-28"}
    context = %{context | capabilities: %{"elicitation" => %{}}}
    {:reply, answer} = MCP.Server.handle({:request, 1, method, params}, context)
    answer
  end

  def commands do
    [
      command("simple_text", [effects: :read], fn _flags, _context ->
        {:ok, "This is a simple text response for testing."}
      end),
      command("error_handling", [effects: :read], fn _flags, _context ->
        {:error, "This tool intentionally returns an error for testing"}
      end),
      command("image_content", [effects: :read], fn _flags, _context ->
        {:ok, Result.ok("An image.", metadata: %{media: [@image]})}
      end),
      command("audio_content", [effects: :read], fn _flags, _context ->
        {:ok, Result.ok("A sound.", metadata: %{media: [@sound]})}
      end),
      command("embedded_resource", [effects: :read], fn _flags, _context ->
        {:ok, Result.ok("A file.", metadata: %{media: [@document]})}
      end),
      command("multiple_content_types", [effects: :read], fn _flags, _context ->
        {:ok, Result.ok("Multiple content types test:", metadata: %{media: [@image, @document]})}
      end),
      command("tool_with_progress", [effects: :read], fn _flags, context ->
        for done <- [0, 50, 100] do
          Context.report(context, done, total: 100, text: "Completed step #{done} of 100")
          Process.sleep(60)
        end

        {:ok, "Done."}
      end),
      command("logging_tool", [effects: :read], fn _flags, _context -> {:ok, "Logged."} end),
      command("streaming_elicitation", [effects: :write], fn _flags, _context ->
        {:ok, "Done."}
      end),
      Skill.new!(
        name: "test.json_schema",
        tool: "json_schema_2020_12_tool",
        aliases: ["json_schema_2020_12_tool"],
        description: "A tool of the suite",
        effects: :read,
        input_schema: @schema,
        run: fn arguments, _context -> {:ok, inspect(arguments)} end
      ),
      # Commands whose caller is asked first.
      asked("elicitation", message: :text),
      asked("input_required_result_elicitation"),
      asked("input_required_result_request_state"),
      asked("input_required_result_tampered_state"),
      # Commands that change the lists of their caller.
      command("trigger_tool_change", [effects: :read], fn _flags, context ->
        change(context, "test-added", "How to add.")
      end),
      command("trigger_prompt_change", [effects: :read], fn _flags, context ->
        change(context, "test-greeting", "Say hello.")
      end)
    ]
  end

  defp asked(action, flags \\ []),
    do:
      command(action, [effects: :write, flags: flags], fn _flags, _context -> {:ok, "Done."} end)

  defp command(action, options, run) do
    name = "test_" <> action

    [name: "test.#{action}", description: "A tool of the suite", tool: name, aliases: [name]]
    |> Keyword.merge([run: run] ++ Keyword.put_new(options, :flags, []))
    |> Skill.new!()
  end

  defp change(context, name, content) do
    view = %{context.view | profile: %{Profile.unrestricted() | id: "ann"}}
    content = "#{content} Version #{System.unique_integer([:positive])}."
    fields = [name: name, title: name, description: content, content: content]

    saved =
      case Store.fetch(view, name) do
        {:ok, _stored} -> Store.update(view, name, title: content)
        {:error, _} -> Store.create(view, fields)
      end

    with {:ok, _stored} <- saved, do: {:ok, Result.ok("Changed.")}
  end
end
