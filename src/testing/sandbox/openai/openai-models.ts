import { RefusedCall } from '../sandbox-operation.ts'
import { openaiInvalid } from './openai-errors.ts'

/** Models without chat completions, dated ids included (OpenAI, "Models": the endpoints of each). */
const RESPONSES_ONLY =
  /^(?:o\d-pro|gpt-\d+(?:\.\d+)?-(?:pro|codex(?:-\w+)?|cyber|rosalind|\w+-law)|gpt-(?:daybreak|rosalind)-[\w-]+|codex-mini-latest|o\d(?:-mini)?-deep-research|computer-use-preview)(?:-\d{4}-\d{2}-\d{2})?$/

/** Does OpenAI offer a model by `/v1/responses` only? */
export function isResponsesOnly(model: string): boolean {
  return RESPONSES_ONLY.test(model)
}

/** Version of a GPT model from its id, such as 504 for `gpt-5.4-mini` and 600 for `gpt-6-sol`; 0 for other ids. */
export function gptVersion(model: string): number {
  const [, major = '0', minor = '0'] = /^(?:ft:)?gpt-(\d|[12]\d)(?!\d)(?:\.(\d+))?/.exec(model) ?? []
  return Number(major) * 100 + Number(minor)
}

const NEVER_WITHOUT_REASONING = /^(?:ft:)?gpt-6(?:-astra|\.1-sol|\.2-)/

/** Refuses a reasoning effort that a model does not have (OpenAI, "Reasoning models": the efforts of each model). */
export function checkEffort(model: string, effort: string, param: string): void {
  if (effort === 'none' ? !NEVER_WITHOUT_REASONING.test(model) : effort !== 'minimal' || gptVersion(model) <= 500)
    return
  const message = `Unsupported value: '${effort}' is not supported with the '${model}' model.`
  throw new RefusedCall(openaiInvalid(message, param, 'unsupported_value'))
}

/** Id that answers carry. Models from gpt-5.6 on have no dated ids. */
export function answerModel(model: string, date = '2026-03-05'): string {
  return /-\d{4}-\d{2}-\d{2}$/.test(model) || gptVersion(model) >= 506 ? model : `${model}-${date}`
}
