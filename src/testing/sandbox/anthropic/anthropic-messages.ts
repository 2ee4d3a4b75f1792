import { chatTurn } from '../model/chat-turn.ts'
import { asNumber, asObject, asText, isGiven } from '../model/loose-json.ts'
import { countTokens } from '../model/words.ts'
import { credentialOf, type SandboxCall } from '../sandbox-call.ts'
import { jsonReply, RefusedCall, type SandboxOperation, streamReply } from '../sandbox-operation.ts'
import { ANTHROPIC_ERRORS, ANTHROPIC_HEADERS, refuseAnthropic } from './anthropic-errors.ts'
import { checkAnthropicFields } from './anthropic-field-checks.ts'
import { checkAnthropicMessages } from './anthropic-message-checks.ts'
import { event, messageEvents, wholeMessage } from './message-answer.ts'
import { readMessagesPrompt } from './read-messages-prompt.ts'

const VERSIONS = ['2023-06-01', '2026-10-21']

/** Anthropic: `POST /v1/messages`, whole and as a stream. */
export const ANTHROPIC_MESSAGES: SandboxOperation = {
  vendor: 'anthropic',
  operation: 'chat',
  errors: ANTHROPIC_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/messages',
  promptText: (body) => readMessagesPrompt(body).lastUserText,
  answer(call, context) {
    const request = asObject(call.body)
    checkHeaders(call)
    if (asText(request['model']) === '') refuseAnthropic('model: Field required')
    if (!isGiven(request['max_tokens'])) refuseAnthropic('max_tokens: Field required')
    const maxTokens = asNumber(request['max_tokens']) ?? -1
    if (!Number.isInteger(maxTokens) || maxTokens < 0)
      refuseAnthropic('max_tokens: Input should be greater than or equal to 1')
    checkRequest(call)
    const turn = chatTurn(readMessagesPrompt(call.body), context.blocked)
    if (request['stream'] !== true) return jsonReply(200, ANTHROPIC_HEADERS, wholeMessage(call.body, turn, context))
    const filler = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: ' more' } })
    return streamReply(ANTHROPIC_HEADERS, messageEvents(call.body, turn, context), filler)
  },
}

/** Anthropic: `POST /v1/messages/count_tokens`. */
export const ANTHROPIC_COUNT_TOKENS: SandboxOperation = {
  vendor: 'anthropic',
  operation: 'count-tokens',
  errors: ANTHROPIC_ERRORS,
  matches: ({ method, path }) => method === 'POST' && path === '/v1/messages/count_tokens',
  promptText: (body) => readMessagesPrompt(body).lastUserText,
  answer(call) {
    checkHeaders(call)
    if (asText(asObject(call.body)['model']) === '') refuseAnthropic('model: Field required')
    checkRequest(call)
    return jsonReply(200, ANTHROPIC_HEADERS, { input_tokens: countTokens(readMessagesPrompt(call.body).texts) })
  },
}

/** The key, in either header, and the version of the API. */
function checkHeaders(call: SandboxCall): void {
  if (credentialOf(call) === '') throw new RefusedCall(ANTHROPIC_ERRORS.status(401, 'x-api-key header is required'))
  const version = call.headers['anthropic-version']
  if (version === undefined) refuseAnthropic('anthropic-version: header is required')
  if (!VERSIONS.includes(version)) refuseAnthropic(`anthropic-version: "${version}" is not a valid version`)
}

function checkRequest(call: SandboxCall): void {
  const request = asObject(call.body)
  const hasBeta = (call.headers['anthropic-beta'] ?? '').trim() !== ''
  checkAnthropicFields(request, { version: call.headers['anthropic-version'] ?? '', hasBeta })
  checkAnthropicMessages(request)
}
