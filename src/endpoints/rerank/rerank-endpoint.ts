import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { jsonSchemaOf } from '../json-schema.ts'
import { isInline, type MediaInput } from '../media-input.ts'
import { checkRequest } from '../request-field.ts'
import { requestTexts } from '../request-texts.ts'
import { isWebUrl } from '../web-urls.ts'
import { createRerankOperation, type RerankOffer } from './rerank-operation.ts'
import { pictureOf, type RerankRequest, rerankSchema, withCheckedPictures } from './rerank-request.ts'
import { rerankEstimate, rerankTextBytes } from './rerank-usage.ts'

const NEVER: ReadonlySet<string> = new Set()

/** `POST /v1/rerank`: sorts documents by relevance to a query (Cohere API, "Rerank"; the shape that most servers share). */
export const rerankEndpoint = rerankAt('/v1/rerank')

/** `POST /v2/rerank`, the path that clients of version 2 of Cohere's API use. */
export const rerankV2Endpoint = rerankAt('/v2/rerank')

function rerankAt(path: string) {
  return defineEndpoint<RerankRequest, RerankOffer>({
    id: 'rerank',
    path,
    kind: 'rerank',
    servesUnlisted: ({ rerank }) => rerank !== undefined,
    errors: openaiErrors,
    canHedge: true,
    parse: (body) => withCheckedPictures(checkRequest<RerankRequest>(rerankSchema(), body)),
    requestSchema: () => jsonSchemaOf(rerankSchema(), 'input'),
    isStream: () => false,
    callerUrls: ({ documents }) => {
      const urls = documents.flatMap((document, index): CallerUrl[] => {
        const picture = pictureOf(document)
        return isWebUrl(picture) ? [{ url: picture, param: `documents[${index}].image` }] : []
      })
      return urls.length === 0 ? undefined : urls
    },
    media: ({ documents }) =>
      documents.flatMap((document): MediaInput[] => {
        const picture = pictureOf(document)
        if (picture === undefined) return []
        return [{ kind: 'image', ...(isInline(picture) ? { data: picture } : {}) }]
      }),
    textBytes: rerankTextBytes,
    estimate: rerankEstimate,
    texts: {
      request: (request) =>
        requestTexts(request, {
          kinds: { query: 'text', documents: 'text' },
          // Every string of an object is text: an object without `text` is ranked by all of them.
          kindOf: (_name, holder) => (pictureOf(holder) === undefined ? 'text' : undefined),
          last: ['query', 'documents'],
          open: ['documents'],
          roleOf: () => 'user',
        }),
    },
    createOperation: ({ rerank }, call) => (rerank === undefined ? undefined : createRerankOperation(rerank, call)),
    cached: {
      leftOut: NEVER,
      isDeterministic: () => true,
      isExcluded: () => false,
      refusals: [],
      idPaths: [['id']],
    },
  })
}
