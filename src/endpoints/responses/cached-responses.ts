import { type CachedAnswers, hasHostedTool, hasOtherTier, namesFile } from '../cached-answers.ts'
import { pluginExtras } from '../chat/chat-surcharges.ts'
import type { ResponsesOffer } from './responses-operation.ts'
import type { ResponsesRequest } from './responses-request.ts'

/** Tools that callers run. */
const TOOLS_OF_CALLERS: ReadonlySet<unknown> = new Set(['function', 'custom'])

/** Caching of Responses: only those that nobody can continue by their id. */
export const cachedResponses: CachedAnswers<ResponsesRequest, ResponsesOffer> = {
  // An answer repeats `user`, `metadata` and similar members, so they decide it.
  leftOut: new Set(['stream', 'stream_options']),
  form: ({ stream }) => (stream === true ? 'stream' : ''),
  isDeterministic: ({ temperature }) => temperature === 0,
  isExcluded: (request) =>
    request.store !== false ||
    request.background === true ||
    isGiven(request.previous_response_id) ||
    isGiven(request.conversation) ||
    isGiven(request['prompt']) ||
    hasOtherTier(request) ||
    hasHostedTool(request.tools, TOOLS_OF_CALLERS) ||
    pluginExtras(request).length > 0 ||
    namesFile(request.input) ||
    refersToItems(request.input),
  // Only the credential that generated encrypted reasoning can read it, and a cached answer does not name its credential.
  refusals: ['"content_filter"', '"refusal"', '"encrypted_content"'],
  idPaths: [['id'], ['response', 'id']],
}

/** Whether an item is a reference or adds tools. */
function refersToItems(input: ResponsesRequest['input']): boolean {
  return Array.isArray(input) && input.some((item) => item.type === 'item_reference' || item['tools'] !== undefined)
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
