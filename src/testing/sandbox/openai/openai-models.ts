import { RefusedCall } from '../sandbox-operation.ts'
import { openaiInvalid } from './openai-errors.ts'

/** Models without chat completions, including dated ids (OpenAI, "Models": the endpoints of each). */
const RESPONSES_ONLY =
  /^(?:o\d-pro|gpt-\d+(?:\.\d+)?-(?:pro|codex(?:-\w+)?|cyber|rosalind|\w+-law)|gpt-(?:daybreak|rosalind)-[\w-]+|codex-mini-latest|o\d(?:-mini)?-deep-research|computer-use-preview)(?:-\d{4}-\d{2}-\d{2})?$/

/** Whether OpenAI offers a model only through `/v1/responses`. */
export function isResponsesOnly(model: string): boolean {
  return RESPONSES_ONLY.test(model)
}

/** Returns the version of a GPT model from its id, such as 504 for `gpt-5.4-mini` and 600 for `gpt-6-sol`. Other ids are 0. */
export function gptVersion(model: string): number {
  const [, major = '0', minor = '0'] = /^(?:ft:)?gpt-(\d|[12]\d)(?!\d)(?:\.(\d+))?/.exec(model) ?? []
  return Number(major) * 100 + Number(minor)
}

/**
 * Efforts of models. The first matching pattern counts (OpenAI, "Models": the page of each; the error text is in
 * https://github.com/anomalyco/opencode/issues/4451).
 */
const EFFORTS: readonly (readonly [pattern: RegExp, efforts: string])[] = [
  [/^(?:gpt-[34]|chatgpt|gpt-[\d.]+-chat|o1-(?:mini|preview))/, ''],
  [/^(?:o\d|gpt-5(?:\.1)?-codex(?!-max))/, 'low medium high'],
  [/^gpt-5-pro/, 'high'],
  [/^gpt-5\.\d-pro/, 'medium high xhigh'],
  [/^gpt-5\.[1-3]-codex/, 'none low medium high xhigh'],
  [/^gpt-5(?!\.)/, 'minimal low medium high'],
  [/^gpt-5\.1/, 'none low medium high'],
  [/^gpt-5\.[2-5]/, 'none low medium high xhigh'],
  [/^gpt-6(?:-astra|\.1-sol|\.2-)/, 'low medium high xhigh max'],
  [/^gpt-/, 'none low medium high xhigh max'],
  [/^/, 'none minimal low medium high xhigh max'],
]

/** Rejects a reasoning effort that a model does not have. */
export function checkEffort(model: string, effort: string, param: string): void {
  if (effort === '') return
  const efforts = EFFORTS.find(([pattern]) => pattern.test(model.replace(/^ft:/, '')))?.[1].split(' ') ?? []
  if (efforts.includes(effort)) return
  if (efforts[0] === '') {
    const message = `Unsupported parameter: '${param}' is not supported with this model.`
    throw new RefusedCall(openaiInvalid(message, param, 'unsupported_parameter'))
  }
  const supported = efforts.map((one) => `'${one}'`).join(', ')
  const message = `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${supported}.`
  throw new RefusedCall(openaiInvalid(message, param, 'unsupported_value'))
}

/** Returns the id in answers. Models from gpt-5.6 on have no dated ids. */
export function answerModel(model: string, date = '2026-03-05'): string {
  return /-\d{4}-\d{2}-\d{2}$/.test(model) || gptVersion(model) >= 506 ? model : `${model}-${date}`
}
