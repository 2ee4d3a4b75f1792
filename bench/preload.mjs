// Loaded with `--import` into other Node programs, so that they are measured like ours.
import { answerQuestions } from './child-process.mjs'
import { processAnswers } from './process-answers.mjs'

answerQuestions({}, { ...processAnswers, account: () => undefined })
