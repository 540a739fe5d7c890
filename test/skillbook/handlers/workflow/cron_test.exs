defmodule Skillbook.Handlers.Workflow.CronTest do
  use ExUnit.Case, async: true

  alias Skillbook.Handlers.Workflow.Cron

  test "schedules" do
    for {text, schedule} <- [
          {"0 9 * * 1", "0 9 * * 1"},
          {" 0  8 * *  1-5 ", "0 8 * * 1-5"},
          {"*/15 0-6,22-23 1,15 JAN-MAR mon", "*/15 0-6,22-23 1,15 JAN-MAR mon"},
          {"59 23 31 12 7", "59 23 31 12 7"},
          {"0 0 9 * * 1", "0 0 9 * * 1"},
          {"59 59 23 31 12 0", "59 59 23 31 12 0"},
          {"0 0 L * ?", "0 0 L * ?"},
          {"0 0 * * 5L", "0 0 * * 5L"},
          {"0 0 * * 1#2", "0 0 * * 1#2"},
          {"0-30/10 * * * *", "0-30/10 * * * *"},
          {"@daily", "@daily"},
          {"@Weekly", "@weekly"}
        ],
        do: assert({text, Cron.cast(text)} == {text, {:ok, schedule}})
  end

  test "what is none" do
    for text <- [
          "",
          "daily",
          "every monday",
          "@reboot",
          "@fortnightly",
          "* * * *",
          "* * * * * * *",
          "60 * * * *",
          "0 24 * * *",
          "0 0 0 * *",
          "0 0 32 * *",
          "0 0 * 13 *",
          "0 0 * * 8",
          "60 0 0 * * *",
          "0 0 * * monday",
          "0,,5 * * * *",
          "-5 * * * *",
          "0 0 * * 1;",
          "0 0 * * $(x)",
          "0 9:00 * * *"
        ],
        do: assert({text, Cron.cast(text)} == {text, :error})
  end
end
