//! The problems of a broken mail, in words.

/// The most problems that are listed.
pub const MAX_PROBLEMS: usize = 20;

/// Problems, each once.
#[derive(Default)]
pub struct Problems {
    list: Vec<String>,
    more: usize,
}

impl Problems {
    pub fn add(&mut self, problem: impl Into<String>) {
        let problem = problem.into();
        if self.list.contains(&problem) {
            return;
        }
        if self.list.len() < MAX_PROBLEMS {
            self.list.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub fn list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.list.push(format!("{} more problems", self.more));
        }
        self.list
    }
}
