import { type CachedAnswers, hasHostedTool, hasOtherTier, namesFile } from '../cached-answers.ts'
import type { MessagesOffer } from './messages-operation.ts'
import type { MessagesRequest } from './messages-request.ts'
import { requestTools } from './request-tools.ts'

/** Tools that callers run; those of the vendor have a dated type. */
const TOOLS_OF_CALLERS: ReadonlySet<unknown> = new Set([undefined, null, 'custom'])

const NO_HEADERS: readonly string[] = []

/** How Messages are answered from the cache. */
export const cachedMessages: CachedAnswers<MessagesRequest, MessagesOffer> = {
  leftOut: new Set(['stream', 'metadata']),
  form: ({ stream }) => (stream === true ? 'stream' : ''),
  headers: ({ messages }) => messages?.answerHeaders ?? NO_HEADERS,
  isDeterministic: ({ temperature }) => temperature === 0,
  isExcluded: (request) =>
    hasOtherTier(request) ||
    isGiven(request.thread) ||
    isGiven(request['container']) ||
    isGiven(request['mcp_servers']) ||
    hasHostedTool(requestTools(request), TOOLS_OF_CALLERS) ||
    namesFile([request.messages, request.system]),
  refusals: ['"refusal"'],
  idPaths: [['id'], ['message', 'id']],
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}
