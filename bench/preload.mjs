// Loaded by `--import` into a Node program that is not ours, so that it is measured as ours are.
import { answerQuestions } from './child-process.mjs'
import { processAnswers } from './process-answers.mjs'

answerQuestions({}, { ...processAnswers, account: () => undefined })
