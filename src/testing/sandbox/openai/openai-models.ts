import { jsonReply, RefusedCall, type SandboxReply, type VendorErrors } from '../sandbox-operation.ts'

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

const USUAL: Readonly<Record<number, readonly [type: string, code: string | null, message: string]>> = {
  400: ['invalid_request_error', null, 'The request is invalid.'],
  401: ['invalid_request_error', 'invalid_api_key', 'Incorrect API key provided: ********.'],
  403: ['permission_error', null, 'You do not have permission to use this resource.'],
  404: ['invalid_request_error', 'model_not_found', 'The model does not exist or you do not have access to it.'],
  429: ['requests', 'rate_limit_exceeded', 'Rate limit reached on requests per min (RPM). Please slow down.'],
  503: ['server_error', 'server_is_overloaded', 'The server is overloaded. Please try again later.'],
}

/** OpenAI's errors. */
export const OPENAI_ERRORS: VendorErrors = {
  status(status, message, retryAfterSeconds) {
    const fallback =
      status >= 500 ? ['server_error', null, 'The server had an error while processing your request.'] : USUAL[400]
    const [type, code, text] = USUAL[status] ?? (fallback as readonly [string, string | null, string])
    return openaiError(status, { message: message ?? text, type, param: null, code }, retryAfterSeconds)
  },
  quota: () =>
    openaiError(429, {
      message: 'You exceeded your current quota, please check your plan and billing details.',
      type: 'insufficient_quota',
      param: null,
      code: 'insufficient_quota',
    }),
  badKey: () => OPENAI_ERRORS.status(401),
  streamEvent() {
    const error = {
      message: 'The server had an error while processing your request.',
      type: 'server_error',
      param: null,
      code: null,
    }
    return `data: ${JSON.stringify({ error })}\n\n`
  },
}

/** A 400 about a field of the request. */
export function openaiInvalid(message: string, param: string | null, code: string | null = null): SandboxReply {
  return openaiError(400, { message, type: 'invalid_request_error', param, code })
}

/** An error of any status. */
export function openaiError(status: number, error: object, retryAfterSeconds?: number): SandboxReply {
  const wait = retryAfterSeconds === undefined ? [] : ['retry-after', String(retryAfterSeconds)]
  return jsonReply(status, [...OPENAI_HEADERS, ...wait], { error })
}

/** @throws RefusedCall for a list that is repeated without brackets after its name: the API reads lists as `image[]`. */
export function refuseRepeatedParts(
  parts: readonly { readonly name: string }[] | undefined,
  lists: readonly string[],
): void {
  const names = new Set<string>()
  for (const { name } of parts ?? []) {
    if (names.has(name) && lists.includes(name))
      throw new RefusedCall(
        openaiInvalid(
          `Duplicate parameter: '${name}'. Only one value is allowed; a list is written '${name}[]'.`,
          name,
          'duplicate_parameter',
        ),
      )
    names.add(name)
  }
}
