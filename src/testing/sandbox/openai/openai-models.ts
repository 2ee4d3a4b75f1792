import type { FormPart } from '../openai-dialect/form-parts.ts'
import {
  bearerAccess,
  eventText,
  jsonReply,
  keyAccess,
  RefusedCall,
  vendorErrors,
  vendorOperations,
} from '../sandbox-operation.ts'

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
  if (efforts[0] === '') refuseParameter(param)
  const supported = efforts.map((one) => `'${one}'`).join(', ')
  const message = `Unsupported value: '${effort}' is not supported with the '${model}' model. Supported values are: ${supported}.`
  refuseOpenai(message, param, 'unsupported_value')
}

/** Returns the id in answers. Models from gpt-5.6 on have no dated ids. */
export function answerModel(model: string, date = '2026-03-05'): string {
  return /-\d{4}-\d{2}-\d{2}$/.test(model) || gptVersion(model) >= 506 ? model : `${model}-${date}`
}

/** Headers of every answer. None of them is meant for the gateway's caller. */
export const OPENAI_HEADERS: readonly string[] = [
  'openai-organization',
  'org-sandbox',
  'openai-processing-ms',
  '12',
  'openai-version',
  '2020-10-01',
  'x-request-id',
  'req_sandbox_openai',
  'x-ratelimit-limit-requests',
  '10000',
  'x-ratelimit-remaining-requests',
  '9999',
  'x-ratelimit-reset-requests',
  '6ms',
  'set-cookie',
  '__cf_bm=sandbox; path=/; HttpOnly; Secure',
  'set-cookie',
  '_cfuvid=sandbox; path=/; HttpOnly; Secure',
]

const SERVER_FAULT = 'The server had an error while processing your request.'

/** OpenAI's errors. */
export const OPENAI_ERRORS = vendorErrors(
  {
    400: ['The request is invalid.', 'invalid_request_error', null],
    401: ['Incorrect API key provided: ********.', 'invalid_request_error', 'invalid_api_key'],
    403: ['You do not have permission to use this resource.', 'permission_error', null],
    404: ['The model does not exist or you do not have access to it.', 'invalid_request_error', 'model_not_found'],
    429: ['Rate limit reached on requests per min (RPM). Please slow down.', 'requests', 'rate_limit_exceeded'],
    500: [SERVER_FAULT, 'server_error', null],
    503: ['The server is overloaded. Please try again later.', 'server_error', 'server_is_overloaded'],
  },
  (status, message, [type, code]) => jsonReply(status, OPENAI_HEADERS, { error: { message, type, param: null, code } }),
  {
    quota: () => {
      const message = 'You exceeded your current quota, please check your plan and billing details.'
      const error = { message, type: 'insufficient_quota', param: null, code: 'insufficient_quota' }
      return jsonReply(429, OPENAI_HEADERS, { error })
    },
    streamEvent: () => eventText({ error: { message: SERVER_FAULT, type: 'server_error', param: null, code: null } }),
  },
)

/** Rejects a request because of a field of it. */
export function refuseOpenai(message: string, param: string | null, code: string | null = null, status = 400): never {
  const error = { message, type: 'invalid_request_error', param, code }
  throw new RefusedCall(jsonReply(status, OPENAI_HEADERS, { error }))
}

/** Rejects a parameter that a model does not have. */
export function refuseParameter(name: string, advice = ''): never {
  const message = `Unsupported parameter: '${name}' is not supported with this model.${advice}`
  return refuseOpenai(message, name, 'unsupported_parameter')
}

/** Makes operations of OpenAI. */
export const openaiOperation = vendorOperations({
  vendor: 'openai',
  errors: OPENAI_ERRORS,
  headers: OPENAI_HEADERS,
  access: bearerAccess(OPENAI_ERRORS),
})

/** Makes operations of Azure OpenAI. */
export const azureOperation = vendorOperations({
  vendor: 'azure',
  errors: OPENAI_ERRORS,
  access: keyAccess(OPENAI_ERRORS),
})

/** Rejects a list that is repeated without brackets after its name: the API reads lists as `image[]`. */
export function refuseRepeatedParts(parts: readonly FormPart[] | undefined, lists: readonly string[]): void {
  const all = (parts ?? []).map(({ name }) => name)
  const repeated = all.find((name, index) => lists.includes(name) && all.indexOf(name) < index)
  if (repeated === undefined) return
  const message = `Duplicate parameter: '${repeated}'. Only one value is allowed; a list is written '${repeated}[]'.`
  refuseOpenai(message, repeated, 'duplicate_parameter')
}
