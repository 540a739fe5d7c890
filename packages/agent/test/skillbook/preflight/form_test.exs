defmodule Skillbook.Preflight.FormTest do
  use ExUnit.Case, async: true

  alias Skillbook.Preflight.Form

  test "questions and orders are told from statements" do
    for {text, asks?, orders?} <- [
          {"Is the door locked?", true, false},
          {"is the door locked", true, false},
          {"The door is locked, isn't it?", true, false},
          {"门锁了吗？", true, true},
          {"Wie wird das Wetter?", true, false},
          {"What a day!", false, false},
          {"See https://a.b/?c=d", false, true},
          {"Lock the door", false, true},
          {"It was open. Lock it now", false, true},
          {"Mach das Licht in der Küche an", false, true},
          {"Bring me a chair", false, true},
          {"Turn on the lights in the kitchen", false, true},
          {"Search for flights", false, true},
          {"Dogs in offices should be allowed", false, false},
          {"I need a hotel in Lyon", false, true},
          {"Here is the receipt, please file it", false, true},
          {"I'd like to complain", false, true},
          {"The door was locked", false, false},
          {"Ich habe die Tür abgeschlossen", false, false},
          {"Meetings are long", false, false},
          {"Peter never answers", false, false},
          {"Cooking calms me down", false, false},
          {"Thanks a lot", false, false},
          {"Don’t worry", false, false},
          {"", false, false},
          {"?!", true, false},
          {"👍", false, false}
        ] do
      assert {text, Form.of(text)} == {text, {asks?, orders?}}
    end
  end

  test "the end of a long text does not count" do
    assert Form.of(String.duplicate("it was so. ", 400) <> "Lock the door?") == {false, false}
    assert Form.of(String.duplicate("é", 3_000) <> "?") == {false, false}
  end
end
