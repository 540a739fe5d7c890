defmodule Skillbook.EmbedderTest do
  use ExUnit.Case, async: true

  alias Skillbook.{Embedder, EmbedderError, OptionError}

  doctest Skillbook.Embedder
  doctest Skillbook.Embedder.Function
  doctest Skillbook.EmbedderError

  defmodule Fixed do
    @moduledoc false
    # Answers whatever it was made with, as no embedder should.
    @behaviour Embedder
    defstruct [:answer, :size]

    @impl true
    def embed(%{answer: answer}, texts, options) do
      if is_function(answer), do: answer.(texts, options), else: answer
    end

    @impl true
    def info(%{size: size}), do: %{model: "fixed", size: size}
  end

  defp f32(numbers), do: for(n <- numbers, into: <<>>, do: <<n::float-32-little>>)
  defp floats(vector), do: for(<<n::float-32-little <- vector>>, do: n)
  defp norm(vector), do: vector |> floats() |> Enum.map(&(&1 * &1)) |> Enum.sum() |> :math.sqrt()

  defp message(answer, texts, size \\ nil) do
    {:error, error} = Embedder.embed(%Fixed{answer: answer, size: size}, texts)
    {error.kind, Exception.message(error)}
  end

  test "vectors of any length get the length 1, and keep their direction" do
    for numbers <- [
          [3, 4],
          [3.0, 4.0],
          [3.0e-30, 4.0e-30],
          [3.0e-44, 0.0],
          [3.0e38, 3.0e38],
          [-1, 0, 0.5],
          [0.6, 0.8]
        ],
        vector <- [numbers, f32(numbers)] do
      assert {:ok, [unit]} = Embedder.embed(%Fixed{answer: {:ok, [vector]}}, ["a"])
      assert_in_delta norm(unit), 1, 1.0e-6
      largest = numbers |> Enum.map(&abs/1) |> Enum.max()
      scale = unit |> floats() |> Enum.map(&abs/1) |> Enum.max()

      for {number, unit} <- Enum.zip(numbers, floats(unit)),
          do: assert_in_delta(number / largest, unit / scale, 1.0e-3)
    end
  end

  test "a vector of the length 1 stays as it is" do
    for numbers <- [[0.6, 0.8], [1.0], [-1.0, 0.0], List.duplicate(:math.sqrt(1 / 384), 384)] do
      vector = f32(numbers)
      assert Embedder.embed(%Fixed{answer: {:ok, [vector]}}, ["a"]) == {:ok, [vector]}
    end
  end

  test "vectors come in the order of the texts" do
    embedder = %Fixed{answer: fn texts, _ -> {:ok, for("t" <> n <- texts, do: axis(n))} end}
    texts = for n <- Enum.shuffle(0..99), do: "t#{n}"
    {:ok, vectors} = Embedder.embed(embedder, texts)
    assert vectors == for("t" <> n <- texts, do: f32(axis(n)))
  end

  defp axis(n), do: for(i <- 0..99, do: if(i == String.to_integer(n), do: 1.0, else: 0.0))

  test "an embedder is not called without texts" do
    assert Embedder.embed(%Fixed{answer: fn _, _ -> raise "called" end}, []) == {:ok, []}
  end

  @unusable "the embedder's answer cannot be used: "
  @value "has a value that is not a finite 32-bit number"

  test "wrong answers are errors that say what is wrong" do
    nan = <<0x7FC00000::32-little>>
    infinity = <<0x7F800000::32-little>>

    for {texts, answer, size, problem} <- [
          {["a"], {:ok, []}, nil, "expected 1 vectors, one for each text, got: 0"},
          {["a"], {:ok, [[1], [1]]}, nil, "expected 1 vectors, one for each text, got: 2"},
          {["a"], {:ok, :none}, nil, "expected 1 vectors, one for each text, got: :none"},
          {["a"], {:ok, [[]]}, nil, "the vector of text 1 is empty"},
          {["a"], {:ok, [""]}, nil, "the vector of text 1 is empty"},
          {["a"], {:ok, [nil]}, nil, "the vector of text 1 is neither a binary nor a list: nil"},
          {["a", "b"], {:ok, [[1], [0]]}, nil, "the vector of text 2 has only zeros"},
          {["a", "b"], {:ok, [[1], [0.0, -0.0]]}, nil,
           "the vector of text 2 has 2 numbers, expected 1, the size of this model's vectors"},
          {["a"], {:ok, [[1, 2, 3]]}, 2,
           "the vector of text 1 has 3 numbers, expected 2, the size of this model's vectors"},
          {["a"], {:ok, [List.duplicate(1, 16_385)]}, nil,
           "the vector of text 1 has 16385 numbers; at most 16384 are accepted"},
          {["a"], {:ok, [nan]}, nil, "the vector of text 1 #{@value}"},
          {["a"], {:ok, [f32([1.0]) <> infinity]}, nil, "the vector of text 1 #{@value}"},
          {["a"], {:ok, [<<1, 2, 3>>]}, nil, "the vector of text 1 #{@value}"},
          {["a"], {:ok, [[1.0e39]]}, nil, "the vector of text 1 #{@value}"},
          {["a"], {:ok, [[Integer.pow(10, 400)]]}, nil, "the vector of text 1 #{@value}"},
          {["a"], {:ok, [[1, "2"]]}, nil, "the vector of text 1 #{@value}"}
        ] do
      assert message(answer, texts, size) == {:bad_answer, @unusable <> problem}
    end

    assert {:ok, [vector]} =
             Embedder.embed(%Fixed{answer: {:ok, [List.duplicate(1, 16_384)]}}, ["a"])

    assert byte_size(vector) == 4 * 16_384
  end

  test "an embedder that fails does not take its caller down" do
    module = inspect(Fixed)

    for {answer, reason} <- [
          {fn _, _ -> raise ArgumentError, "no" end, "#{module} ended with ArgumentError: no"},
          {fn _, _ -> throw(:ball) end, "#{module} ended with the throw of :ball"},
          {fn _, _ -> exit(:gone) end, "#{module} ended with :gone"},
          {fn _, _ -> Process.exit(self(), :kill) end, "#{module} ended with :killed"},
          {:none, "expected {:ok, vectors} from #{module}, got: :none"},
          {{:error, :none}, "expected {:ok, vectors} from #{module}, got: {:error, :none}"}
        ] do
      assert message(answer, ["a"]) == {:failed, "the embedder failed: " <> reason}
    end

    error = %EmbedderError{kind: :server, reason: "down", status: 500}
    assert Embedder.embed(%Fixed{answer: {:error, error}}, ["a"]) == {:error, error}
  end

  test "an embedder is ended at the time limit" do
    test = self()

    embedder = %Fixed{
      answer: fn _, options ->
        send(test, {self(), options})
        Process.sleep(:infinity)
      end
    }

    assert {:error, %EmbedderError{kind: :timeout} = error} =
             Embedder.embed(embedder, ["a"], timeout: 50)

    assert Exception.message(error) == "the embedder took too long: no vectors within 50 ms"
    assert_receive {worker, [timeout: 50]}
    refute Process.alive?(worker)
  end

  test "long texts are cut between characters" do
    max = 128 * 1024
    echo = %Fixed{answer: fn texts, _ -> {:ok, Enum.map(texts, fn _ -> [1] end)} end}
    test = self()
    spy = %Fixed{answer: fn texts, _ -> send(test, texts) && {:ok, [[1]]} end}

    for {text, size} <- [
          {String.duplicate("a", max), max},
          {String.duplicate("a", max + 1), max},
          {"a" <> String.duplicate("é", max), max - 1},
          {"aa" <> String.duplicate("語", max), max - 0},
          {"a" <> String.duplicate("😀", max), max - 3},
          {"aaa" <> String.duplicate("😀", max), max - 1}
        ] do
      assert {:ok, [_]} = Embedder.embed(echo, [text])
      assert {:ok, [_]} = Embedder.embed(spy, [text])
      assert_receive [cut]
      assert String.valid?(cut) and String.starts_with?(text, cut)
      assert byte_size(cut) == size
    end
  end

  test "wrong arguments are errors that name them" do
    ok = Embedder.Function.new("m", fn texts -> Enum.map(texts, fn _ -> [1] end) end)
    at = "of Skillbook.Embedder.embed/3"

    for {arguments, message} <- [
          {[:openai, ["a"]],
           "expected an embedder, such as the result of Skillbook.Embedder.OpenAI.new!/1, as " <>
             "the argument `embedder` #{at}, got: :openai"},
          {[ok, "a"], "expected a list as the argument `texts` #{at}, got: \"a\""},
          {[ok, ["a", nil]],
           "expected UTF-8 texts as the argument `texts` #{at}, got as text 2: nil"},
          {[ok, [<<255>>]],
           "expected UTF-8 texts as the argument `texts` #{at}, got as text 1: <<255>>"},
          {[ok, List.duplicate("a", 10_001)],
           "expected at most 10000 texts as the argument `texts` #{at}, got 10001; " <>
             "call it for a part at a time"}
        ] do
      assert_raise ArgumentError, message, fn -> apply(Embedder, :embed, arguments) end
    end

    assert_raise OptionError,
                 "expected a number of milliseconds as the option :timeout of a call of an " <>
                   "embedder, got: 0",
                 fn -> Embedder.embed(ok, ["a"], timeout: 0) end

    assert {:ok, vectors} = Embedder.embed(ok, List.duplicate("a", 10_000))
    assert length(vectors) == 10_000

    assert_raise ArgumentError,
                 "expected text as the argument `model` of Skillbook.Embedder.Function.new/2, " <>
                   "got: :m; write it as a string",
                 fn -> Embedder.Function.new(:m, & &1) end
  end

  test "an embedder is told from other structs" do
    assert Embedder.embedder?(%Fixed{})
    assert Embedder.embedder?(Embedder.Function.new("m", & &1))
    refute Embedder.embedder?(%Skillbook.Model.Function{function: & &1})
    refute Embedder.embedder?(URI.parse("http://localhost"))
    refute Embedder.embedder?(nil)
  end
end
