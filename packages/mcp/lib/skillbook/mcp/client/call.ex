defmodule Skillbook.MCP.Client.Call do
  @moduledoc false
  # The handler of the commands that are tools and prompts of a server. The executor has asked the
  # policy before; texts of the answer are marked as those of a stranger.

  alias Skillbook.MCP.Client.{Error, Session, Settings, State, Tools}
  alias Skillbook.Support.{External, JSON}
  alias Skillbook.{Context, Result}

  @max_text 100_000
  @max_blocks 100
  # Images and sounds of an answer, and their bytes together. Others are only named.
  @max_media 20
  @max_bytes 8 * 1024 * 1024
  # Milliseconds before the time limit of the handler, to tell an older server.
  @margin 250

  @spec run(Settings.t(), Skillbook.Flags.t(), Context.t()) ::
          {:ok, Result.t()} | {:error, Exception.t()}
  def run(settings, arguments, %Context{entry: entry} = context) do
    settings = Settings.called_by(settings, context.profile)

    # A page of another source may name this handler; it has no tool.
    with {:ok, tool} <- tool(settings, entry) do
      params = %{"name" => tool.tool, "arguments" => arguments}

      options = [
        deadline: deadline(settings, context),
        headers: Tools.call_headers(tool, arguments)
      ]

      with {:ok, result} <- Session.request(settings, method(tool.kind), params, options),
           do: result(settings, tool, content(tool.kind, result))
    end
  end

  defp method(:tool), do: "tools/call"
  defp method(:prompt), do: "prompts/get"

  defp content(:tool, result), do: result

  # The messages of a prompt, each with its role if the user does not write all of them.
  defp content(:prompt, result) do
    messages = with list when is_list(list) <- result["messages"], do: list, else: (_ -> [])
    alone? = Enum.all?(messages, &(is_map(&1) and &1["role"] == "user"))
    %{"content" => Enum.flat_map(messages, &message(&1, alone?))}
  end

  defp message(%{"content" => %{"type" => "text", "text" => text} = part, "role" => role}, false)
       when is_binary(text) and role in ["user", "assistant"],
       do: [%{part | "text" => "#{role}: #{text}"}]

  defp message(%{"content" => part}, _alone?), do: [part]
  defp message(_other, _alone?), do: [nil]

  defp tool(settings, entry) do
    with %Tools{} = tool <- State.entries(settings).tools[entry.name],
         true <- entry.source == settings.label,
         true <- entry.path == Tools.path(settings, tool.kind, tool.tool) do
      {:ok, tool}
    else
      _ ->
        Session.error(settings, :changed, "the command #{entry.name} is not there any more")
    end
  end

  defp deadline(settings, %{timeout: nil}), do: Session.deadline(settings)

  defp deadline(settings, %{timeout: timeout}) do
    left = System.monotonic_time(:millisecond) + max(timeout - @margin, 1)
    min(Session.deadline(settings), left)
  end

  defp result(settings, tool, result) do
    content = with list when is_list(list) <- result["content"], do: list, else: (_ -> [])
    structured = result["structuredContent"]
    origin = "the #{tool.kind} #{tool.tool} of the MCP server #{settings.label}"
    {blocks, more} = Enum.split(content, @max_blocks)

    texts = for %{"type" => "text", "text" => text} <- blocks, is_binary(text), do: text
    text = Enum.join(texts, "\n")

    text = if text == "" and structured != nil, do: JSON.encode(structured), else: text

    others = for block <- blocks, line = other(block), do: "- " <> line

    others =
      others ++ if(more == [], do: [], else: ["- #{length(more)} more parts were left out"])

    parts =
      [
        if(text != "", do: External.block("the answer of #{origin}", text, max: @max_text)),
        if(others != [],
          do: Enum.join(["It also sent:" | others], "\n")
        )
      ]
      |> Enum.reject(&is_nil/1)

    cond do
      result["isError"] == true ->
        reason = "#{tool.tool} has failed#{if(parts == [], do: "", else: ":\n")}#{joined(parts)}"
        {:error, %Error{kind: :rpc, server: settings.label, reason: reason}}

      parts == [] ->
        {:ok, Result.ok("Done: #{origin} sent no text.")}

      true ->
        {:ok, Result.ok(joined(parts), data: structured, metadata: metadata(blocks))}
    end
  end

  # The media of an answer, for models and clients that take them.
  defp metadata(blocks) do
    {media, _bytes} =
      for block <- blocks, reduce: {[], 0} do
        {media, bytes} ->
          with {:ok, one} <- medium(block),
               bytes = bytes + byte_size(one.data),
               true <- bytes <= @max_bytes and length(media) < @max_media,
               do: {[one | media], bytes},
               else: (_ -> {media, bytes})
      end

    if media == [], do: %{}, else: %{media: Enum.reverse(media)}
  end

  @type_pattern ~r/\A(image|audio)\/[a-z0-9][a-z0-9.+-]{0,99}\z/

  defp medium(%{"type" => kind, "data" => data, "mimeType" => type})
       when kind in ["image", "audio"] and is_binary(data) and is_binary(type) do
    with true <- type =~ @type_pattern and data != "",
         {:ok, bytes} <- Base.decode64(data, ignore: :whitespace),
         do: {:ok, %{type: type, data: bytes}},
         else: (_ -> :error)
  end

  defp medium(_other), do: :error

  defp joined(parts), do: Enum.join(parts, "\n\n")

  defp other(%{"type" => "text"}), do: nil

  defp other(%{"type" => kind, "data" => data} = block)
       when kind in ["image", "audio"] and is_binary(data),
       do: "an #{kind} (#{External.line(mime(block), 80)}#{size(data)})"

  defp other(%{"type" => "resource_link", "uri" => uri} = link) when is_binary(uri) do
    name = if is_binary(link["name"]), do: " named #{External.line(link["name"], 100)}", else: ""
    "a link to the resource #{External.line(uri)}#{name}"
  end

  defp other(%{"type" => "resource", "resource" => %{"uri" => uri, "text" => text}})
       when is_binary(uri) and is_binary(text),
       do: External.block("the resource #{External.line(uri)}", text)

  defp other(%{"type" => "resource", "resource" => %{"uri" => uri} = resource})
       when is_binary(uri),
       do:
         "the resource #{External.line(uri)} " <>
           "(#{External.line(mime(resource), 80)}#{size(resource["blob"])})"

  defp other(_block), do: "a part of an unknown type"

  # Of bytes in Base64.
  defp size(data) when is_binary(data), do: ", #{div(byte_size(data) * 3, 4)} bytes"
  defp size(_none), do: ""

  defp mime(%{"mimeType" => type}) when is_binary(type), do: type
  defp mime(_block), do: "unknown"
end
