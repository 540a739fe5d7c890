defmodule Skillbook.Hostile.ModelStreamsTest do
  # A model's server that sends something for ever, but no answer, ends at the total limit.
  use ExUnit.Case, async: true

  alias Skillbook.Model
  alias Skillbook.Test.HTTPServer

  @limit 700
  # A busy machine may be late, but not for ever.
  @slack 10_000

  @head [{"content-type", "text/event-stream"}]
  @continue {:endless, "HTTP/1.1 100 Continue\r\n\r\n"}
  @early_hints {:endless, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"}

  @streams [
    {"100 Continue", [@continue]},
    {"103 Early Hints", [@early_hints]},
    {"the head, line by line", [{:raw, "HTTP/1.1 200 OK\r\n"}, {:endless, "a: b\r\n"}]},
    {"blank lines before the head", [{:endless, "\r\n"}]},
    {"comments", [{:head, 200, @head}, {:endless, "5\r\n: ok\n\r\n"}]},
    {"empty events", [{:head, 200, @head}, {:endless, "2\r\n\n\n\r\n"}]},
    {"fields without a meaning", [{:head, 200, @head}, {:endless, "7\r\nid: 12\n\r\n"}]},
    {"empty pieces of text",
     [
       {:head, 200, @head},
       {:endless,
        (fn event -> "#{Integer.to_string(byte_size(event), 16)}\r\n#{event}\r\n" end).(
          ~s(data: {"choices":[{"delta":{"content":""}}]}\n\n)
        )}
     ]},
    {"extensions of a chunk", [{:head, 200, @head}, {:raw, "5;"}, {:endless, "a=b;"}]}
  ]

  # Events that say nothing, calls and data of a vendor.
  @events [
    {Model.OpenAI, "new calls",
     ~s({"choices":[{"delta":{"tool_calls":[{"function":{"name":"a","arguments":""}}]}}]})},
    {Model.Anthropic, "pings", ~s({"type":"ping"})},
    {Model.Anthropic, "starts of a call",
     ~s({"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"a"}})},
    {Model.Anthropic, "thoughts",
     ~s({"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}\n\n) <>
       ~s(data: {"type":"content_block_stop","index":0})},
    {Model.Responses, "progress", ~s({"type":"response.in_progress","response":{}})},
    {Model.Responses, "reasoning",
     ~s({"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning",) <>
       ~s("encrypted_content":"x"}})},
    {Model.Gemini, "counts", ~s({"usageMetadata":{"promptTokenCount":1}})},
    {Model.Gemini, "thoughts",
     ~s({"candidates":[{"content":{"parts":[{"thought":true,"text":"x"}]}}]})}
  ]

  @rows for({name, steps} <- @streams, do: {Model.OpenAI, name, steps}) ++
          for(
            {module, name, data} <- @events,
            do:
              {module, name,
               [
                 {:head, 200, @head},
                 {:endless,
                  "#{Integer.to_string(byte_size(data) + 8, 16)}\r\ndata: #{data}\n\n\r\n"}
               ]}
          )

  for {module, name, steps} <- @rows do
    test "#{name} for ever, #{inspect(module)}" do
      {_pid, url} = HTTPServer.start([unquote(Macro.escape(steps))])
      options = [url: url, model: "m", key: nil, timeout: @limit, retries: 0, proxy: nil]
      model = unquote(module).new!(options)

      {time, {:error, error}} =
        :timer.tc(fn ->
          Model.chat(model, [%{role: :user, content: "Hi"}], [], fn _text -> :ok end)
        end)

      # Some end earlier, at a limit of size.
      assert error.kind in [:timeout, :bad_answer]
      assert time < (@limit + @slack) * 1000
      # The connection is closed, so that it costs nothing afterwards.
      assert_receive :hung_up, @slack
    end
  end
end
