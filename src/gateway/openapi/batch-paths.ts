import type { Endpoint } from '../../endpoints/endpoint.ts'
import {
  ERROR_RESPONSES,
  IDEMPOTENCY_KEY,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPaths,
  pathParameter,
  reading,
} from './openapi-document.ts'

const FILE_ID = pathParameter('file', 'Id of the file.')
const BATCH_ID = pathParameter('batch', 'Id of the batch.')
const FILE_FORM = {
  type: 'object',
  required: ['file'],
  properties: {
    file: { type: 'string', contentMediaType: 'application/jsonl' },
    purpose: { const: 'batch', description: 'Optional for clients with files of their own shape.' },
  },
}
const X_API_KEY = { security: [{ bearer: [] }, { x_api_key: [] }] }
const BATCH_BODY = {
  type: 'object',
  required: ['input_file_id', 'endpoint', 'completion_window'],
  properties: {
    input_file_id: { type: 'string' },
    endpoint: { type: 'string' },
    completion_window: { const: '24h' },
    metadata: { type: 'object' },
    output_expires_after: {
      type: 'object',
      required: ['anchor', 'seconds'],
      properties: { anchor: { const: 'created_at' }, seconds: { type: 'integer', minimum: 3_600, maximum: 2_592_000 } },
    },
    webhook_url: { type: 'string' },
  },
}

/** Paths of files and their batches. */
const FILE_BATCHES: OpenApiPaths = {
  '/v1/files': {
    get: { ...reading('list_files', 'The files of the account', 'batches'), ...X_API_KEY },
    post: {
      ...reading('create_file', 'Keeps a file of requests', 'batches'),
      ...X_API_KEY,
      parameters: [IDEMPOTENCY_KEY],
      requestBody: { required: true, content: { 'multipart/form-data': { schema: FILE_FORM } } },
    },
  },
  '/v1/files/{file}': {
    get: { ...reading('get_file', 'One file', 'batches'), ...X_API_KEY, parameters: [FILE_ID] },
    delete: { ...reading('delete_file', 'Deletes a file', 'batches'), ...X_API_KEY, parameters: [FILE_ID] },
  },
  '/v1/files/{file}/content': {
    get: {
      ...reading('get_file_content', 'The bytes of a file', 'batches'),
      ...X_API_KEY,
      parameters: [FILE_ID],
      responses: { 200: { description: 'The bytes', content: { '*/*': {} } }, ...ERROR_RESPONSES },
    },
  },
  '/v1/batches': {
    get: reading('list_batches', 'Batches, newest first', 'batches'),
    post: {
      ...reading('create_batch', 'Runs the requests of a file', 'batches'),
      parameters: [IDEMPOTENCY_KEY],
      requestBody: { required: true, content: { 'application/json': { schema: BATCH_BODY } } },
    },
  },
  '/v1/batches/{batch}': { get: { ...reading('get_batch', 'One batch', 'batches'), parameters: [BATCH_ID] } },
  '/v1/batches/{batch}/cancel': {
    post: {
      ...reading('cancel_batch', 'Ends a batch without its remaining requests', 'batches'),
      parameters: [BATCH_ID],
    },
  },
}

/** Paths of files and batches, including endpoints with their own batches. */
export function batchPaths(endpoints: readonly Endpoint[]): OpenApiPaths {
  const paths: OpenApiPaths = { ...FILE_BATCHES }
  for (const endpoint of endpoints) Object.assign(paths, inlineBatchPaths(endpoint))
  return paths
}

function inlineBatchPaths({ id, inlineBatches: dialect, requestSchema, takesXApiKey }: Endpoint): OpenApiPaths {
  if (dialect === undefined) return {}
  const { path, cursors, maxPage, listMember, bodyMember, resultsType } = dialect
  const operation = (name: string, summary: string, parameters: readonly OpenApiParameter[]): OpenApiOperation => ({
    ...reading(`${name}_of_${id}`, summary, 'batches'),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(takesXApiKey === true ? X_API_KEY : {}),
  })
  const item = {
    type: 'object',
    required: ['custom_id', bodyMember],
    additionalProperties: false,
    properties: { custom_id: { type: 'string' }, [bodyMember]: requestSchema?.() ?? { type: 'object' } },
  }
  const schema = {
    type: 'object',
    required: [listMember],
    additionalProperties: false,
    properties: { [listMember]: { type: 'array', minItems: 1, items: item }, webhook_url: { type: 'string' } },
  }
  const query = (name: string, type: Readonly<Record<string, unknown>>): OpenApiParameter => ({
    name,
    in: 'query',
    required: false,
    schema: type,
  })
  const pages = [
    query('limit', { type: 'integer', minimum: 1, maximum: maxPage }),
    query(cursors.after, { type: 'string' }),
    query(cursors.before, { type: 'string' }),
  ]
  const results = operation('get_batch_results', 'How the requests of an ended batch went', [BATCH_ID])
  return {
    [path]: {
      get: operation('list_batches', `Batches of ${id}, newest first`, pages),
      post: {
        ...operation('create_batch', `Runs requests of ${id}`, [IDEMPOTENCY_KEY]),
        requestBody: { required: true, content: { 'application/json': { schema } } },
      },
    },
    [`${path}/{batch}`]: {
      get: operation('get_batch', 'One batch', [BATCH_ID]),
      delete: operation('delete_batch', 'Deletes an ended batch and its results', [BATCH_ID]),
    },
    [`${path}/{batch}/results`]: {
      get: {
        ...results,
        responses: { ...results.responses, 200: { description: 'A line for each', content: { [resultsType]: {} } } },
      },
    },
    [`${path}/{batch}/cancel`]: {
      post: operation('cancel_batch', 'Ends a batch without its remaining requests', [BATCH_ID]),
    },
  }
}
