defmodule Skillbook.Support.RedactTest do
  use ExUnit.Case, async: true

  alias Skillbook.Support.Redact

  doctest Redact

  defp redact(text, secrets), do: Redact.secrets(text, List.wrap(secrets), "[x]")

  test "nothing else is removed" do
    for {text, secrets, result} <- [
          {"", "secret-token", ""},
          {"nothing here", [], "nothing here"},
          {"nothing here", [""], "nothing here"},
          {"a secret to all", "secret-token", "a secret to all"},
          {"SECRET-TOKEN, secret-token", "secret-token", "[x], [x]"},
          {"secret-tokensecret-token", "secret-token", "[x]"},
          {"pass it, PASS", "pass", "[x] it, [x]"},
          {"Zm9v, foo, YmFyZm9v", "foo", "Zm9v, [x], YmFyZm9v"},
          {"der Schlüssel schlüsselwort!", "schlüsselwort", "der [x] [x]!"},
          {<<255, "secret-token", 255>>, "secret-token", <<255, "[x]", 255>>}
        ] do
      assert {text, redact(text, secrets)} == {text, result}
    end
  end

  # In reductions, since a busy machine takes longer for the same work. They are 15 to 25 million.
  test "a long text and a long secret take little work" do
    secret = Base.encode64(:crypto.strong_rand_bytes(12_000))
    {before, rest} = {String.duplicate("a", 32_000), String.duplicate("b", 16_000)}
    {:reductions, began} = Process.info(self(), :reductions)
    assert redact(before <> secret <> rest, secret) == before <> "[x]" <> rest
    {:reductions, ended} = Process.info(self(), :reductions)
    assert ended - began < 100_000_000
  end
end
