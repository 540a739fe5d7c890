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

  test "a long text and a long secret take little time" do
    secret = Base.encode64(:crypto.strong_rand_bytes(12_000))
    text = String.duplicate("a", 32_000) <> secret <> String.duplicate("b", 16_000)
    {time, result} = :timer.tc(fn -> redact(text, secret) end)
    assert result == String.duplicate("a", 32_000) <> "[x]" <> String.duplicate("b", 16_000)
    assert time < 3_000_000
  end
end
