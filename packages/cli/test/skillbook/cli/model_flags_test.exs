defmodule Skillbook.CLI.ModelFlagsTest do
  # Not async: it sets environment variables that others read.
  use ExUnit.Case

  alias Skillbook.CLI.ModelFlags
  alias Skillbook.Model

  @variables ~w(OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY OTHER_KEY)

  setup do
    before = System.get_env() |> Map.take(@variables)

    on_exit(fn ->
      Enum.each(@variables, &System.delete_env/1)
      System.put_env(before)
    end)

    Enum.each(@variables, &System.put_env(&1, "sk-test"))
  end

  test "an interface has its own server and key, unless they are given" do
    own = "https://own.example/x/v1"

    for {flags, module, url, key} <- [
          {[api: "openai"], Model.OpenAI, "https://api.openai.com/v1/chat/completions",
           "OPENAI_API_KEY"},
          {[api: "responses"], Model.Responses, "https://api.openai.com/v1/responses",
           "OPENAI_API_KEY"},
          {[api: "anthropic"], Model.Anthropic, "https://api.anthropic.com/v1/messages",
           "ANTHROPIC_API_KEY"},
          {[api: "gemini"], Model.Gemini,
           "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent" <>
             "?alt=sse", "GEMINI_API_KEY"},
          {[api: "anthropic", key_env: "OTHER_KEY"], Model.Anthropic,
           "https://api.anthropic.com/v1/messages", "OTHER_KEY"},
          {[api: "anthropic", url: own], Model.Anthropic, own <> "/messages", nil},
          {[api: "responses", url: own, key_env: "OTHER_KEY"], Model.Responses,
           own <> "/responses", "OTHER_KEY"},
          {[url: own], Model.OpenAI, own <> "/chat/completions", nil}
        ] do
      assert {:ok, model} = ModelFlags.model("chat", [model: "m"] ++ flags)
      assert {model.__struct__, to_string(model.url)} == {module, url}
      assert model.key == if(key, do: {:env, key})
    end
  end

  test "the key of a vendor has to be there" do
    System.delete_env("GEMINI_API_KEY")

    assert ModelFlags.model("chat", api: "gemini", model: "m") ==
             {:error,
              "--key-env expects an environment variable with a key; " <>
                "GEMINI_API_KEY is not set or empty"}
  end
end
