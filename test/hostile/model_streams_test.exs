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

  for {name, steps} <- @streams do
    test "#{name} for ever" do
      {_pid, url} = HTTPServer.start([unquote(Macro.escape(steps))])

      {:ok, model} =
        Model.OpenAI.new(url: url, model: "m", timeout: @limit, retries: 0, proxy: nil)

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
