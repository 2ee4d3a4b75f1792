import type { JsonSchema } from '../../endpoints/schema.ts'

/** Description of one parameter of an operation. */
export interface OpenApiParameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required: boolean
  readonly description?: string
  readonly schema: JsonSchema
}

/** Body, by media type. */
type Content = Readonly<Record<string, { readonly schema?: JsonSchema }>>

/** Answer: its own, or a reference to one of the document. */
type OpenApiResponse = { readonly description: string; readonly content?: Content } | { readonly $ref: string }

/** One method of one path (OpenAPI 3.1, "Operation Object"). */
export interface OpenApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly parameters?: readonly OpenApiParameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, OpenApiResponse>>
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
}

/** The operations of each path, by method in lower case. */
export type OpenApiPaths = Record<string, Record<string, OpenApiOperation>>

/** A document of OpenAPI 3.1. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly tags: readonly { readonly name: string }[]
  readonly paths: OpenApiPaths
  readonly components: Readonly<Record<string, unknown>>
}

/** Differences between the documents of the two APIs. */
interface DocumentFacts {
  readonly title: string
  readonly description: string
  /** Kind of bearer token. */
  readonly credential: string
  readonly paths: OpenApiPaths
}

/** Answer to every request that cannot be served, for `responses` of an operation. */
export const ERROR_RESPONSES = { default: { $ref: '#/components/responses/Error' } } as const

/** The major version of both APIs is in their paths. */
const API_VERSION = '1'

/** Builds a document. Its server is the folder that contains the document, wherever it is mounted. */
export function openApiDocument({ title, description, credential, paths }: DocumentFacts): OpenApiDocument {
  const names = Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(({ tags }) => tags))
  return {
    openapi: '3.1.1',
    info: { title, version: API_VERSION, description },
    servers: [{ url: '.', description: 'where this document is' }],
    security: [{ bearer: [] }],
    tags: [...new Set(names)].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: credential },
        x_api_key: { type: 'apiKey', in: 'header', name: 'x-api-key', description: credential },
      },
      responses: {
        Error: {
          description: 'An error. The header x-signalbox-error-code has its code in every dialect.',
          content: { 'application/json': { schema: ERROR_SCHEMA } },
        },
      },
    },
  }
}

const TEXT_OR_NULL = { type: ['string', 'null'] }
const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['message'],
      properties: { message: { type: 'string' }, type: TEXT_OR_NULL, param: TEXT_OR_NULL, code: TEXT_OR_NULL },
    },
  },
}

/** Builds a parameter in the path. */
export function pathParameter(name: string, description?: string): OpenApiParameter {
  const schema = { type: 'string', minLength: 1 }
  return { name, in: 'path', required: true, ...(description === undefined ? {} : { description }), schema }
}

/** Builds a JSON answer with status 200. */
export function jsonAnswer(description: string, schema: JsonSchema = { type: 'object' }): OpenApiResponse {
  return { description, content: { 'application/json': { schema } } }
}

/** Builds an operation that only reads. */
export function reading(operationId: string, summary: string, tag: string): OpenApiOperation {
  return { operationId, summary, tags: [tag], responses: { 200: jsonAnswer('Requested object'), ...ERROR_RESPONSES } }
}

/** Parameter of operations that are executed once. */
export const IDEMPOTENCY_KEY: OpenApiParameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'If several requests have the same key, only the first is executed. The others get its answer, for 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}
