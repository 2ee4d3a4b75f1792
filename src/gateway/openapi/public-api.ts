import type { Endpoint, StoredObjects } from '../../endpoints/endpoint.ts'
import type { JsonSchema } from '../../endpoints/schema.ts'
import type { PipelineContext } from '../../pipeline/pipeline-context.ts'
import { TASK_ACTIONS } from '../../tasks/task-requests.ts'
import { ESTIMATE_PATH } from '../routes.ts'
import {
  ERROR_RESPONSES,
  IDEMPOTENCY_KEY,
  jsonAnswer,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  type OpenApiPaths,
  openApiDocument,
  pathParameter,
  reading,
} from './openapi-document.ts'

/** Parts of a gateway that the document describes. */
type Described = Pick<PipelineContext, 'endpoints' | 'batches'>

/** Documents by gateway: anyone may request them, and building one takes as long as many requests. */
const documents = new WeakMap<Described, OpenApiDocument>()

/** Returns the document of everything that callers can request from a gateway, including the host's own endpoints. It is built once. */
export function publicApi(gateway: Described): OpenApiDocument {
  const known = documents.get(gateway)
  if (known !== undefined) return known
  const made = documentOf(gateway)
  documents.set(gateway, made)
  return made
}

function documentOf({ endpoints, batches }: Described): OpenApiDocument {
  const paths: OpenApiPaths = {}
  for (const endpoint of endpoints.all) {
    paths[endpoint.path] = { post: callOperation(endpoint) }
    if (endpoint.task !== undefined) addTaskPaths(paths, endpoint)
    if (endpoint.kept !== undefined) addStoredPaths(paths, endpoint)
  }
  Object.assign(paths, READABLE_PATHS, { [ESTIMATE_PATH]: { post: ESTIMATE_OPERATION } })
  if (batches !== undefined) Object.assign(paths, batchPaths(endpoints.withInlineBatches))
  return openApiDocument({
    title: 'Signalbox gateway',
    description: 'Model vendors behind one API. The catalog row of a model lists the fields that it supports.',
    credential: 'An API key of the gateway.',
    paths,
  })
}

/** Readable paths that do not depend on endpoints. `test/gateway/endpoints/openapi.test.ts` requests each of them. */
const READABLE_PATHS: OpenApiPaths = {
  '/v1/models': { get: reading('list_models', 'The models that this key may use', 'models') },
  '/v1/models/{model}': {
    get: {
      ...reading('get_model', 'One model', 'models'),
      parameters: [pathParameter('model', 'Id of the model. Slashes need no encoding.')],
    },
  },
  '/v1/account': { get: reading('get_account', 'Balance, held and owed money of the account', 'account') },
  '/healthz': { get: { ...reading('get_health', 'The state of the gateway', 'health'), security: [] } },
  '/api/hello': { get: { ...reading('get_hello', 'Opens the connection of a coding client', 'health'), security: [] } },
  '/openapi.json': { get: { ...reading('get_openapi', 'This document', 'health'), security: [] } },
}

const ESTIMATE_OPERATION: OpenApiOperation = {
  operationId: 'estimate_request',
  summary: 'Returns the maximum hold and cost of a request, without calling a model',
  tags: ['estimate'],
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['endpoint', 'body'],
          additionalProperties: false,
          properties: {
            endpoint: { type: 'string', description: 'Id or path of an endpoint.' },
            body: { type: 'object', description: 'The body that the endpoint would get.' },
          },
        },
      },
    },
  },
  responses: {
    200: jsonAnswer('The estimate', {
      type: 'object',
      required: ['object', 'endpoint', 'model', 'usage', 'billing', 'held', 'currency', 'exact', 'models'],
      properties: {
        object: { const: 'estimate' },
        endpoint: { type: 'string' },
        model: { type: 'string' },
        usage: { type: 'object', additionalProperties: { type: 'number' } },
        billing: { enum: ['on', 'off'] },
        held: { type: ['string', 'null'], description: 'Decimal dollars, or null if billing is off.' },
        currency: { const: 'USD' },
        exact: { const: false },
        models: { type: 'array', items: { type: 'string' } },
      },
    }),
    ...ERROR_RESPONSES,
  },
  security: [{ bearer: [] }, { x_api_key: [] }],
}

function callOperation(endpoint: Endpoint): OpenApiOperation {
  const { id, path, isFree, takesXApiKey, formBody, takesForms, task } = endpoint
  const schema = schemaOf(endpoint)
  const form = formBody === undefined ? {} : { 'multipart/form-data': { schema: { type: 'object' } } }
  const content =
    takesForms === 'only' ? { 'multipart/form-data': { schema } } : { 'application/json': { schema }, ...form }
  return {
    operationId: `create_${nameOf(path)}`,
    summary: `Calls a model by ${path}`,
    tags: [id],
    parameters: isFree === true ? [] : [IDEMPOTENCY_KEY],
    requestBody: { required: true, content },
    responses: {
      ...(task === undefined ? { 200: answerOf(endpoint, schema) } : { 202: jsonAnswer('The task') }),
      ...ERROR_RESPONSES,
    },
    ...(takesXApiKey === true ? { security: [{ bearer: [] }, { x_api_key: [] }] } : {}),
  }
}

/** Returns the rules of a body. If the shape depends on the model, they contain the rules of each shape. */
function schemaOf(endpoint: Endpoint): JsonSchema {
  if (endpoint.shapes === undefined) return endpoint.requestSchema?.() ?? { type: 'object' }
  const shapes = Array.from(endpoint.shapes, ([protocol, shape]) => ({
    title: `models of the protocol ${protocol}`,
    ...(shape.requestSchema?.() ?? { type: 'object' }),
  }))
  return { anyOf: shapes }
}

function answerOf({ streamType, answerType }: Endpoint, schema: JsonSchema) {
  const { description, content } = { content: {}, description: '', ...jsonAnswer('Answer of the model') }
  const mayStream = JSON.stringify(schema).includes('"stream":')
  const text = { schema: { type: 'string' } }
  const stream = {
    ...(answerType === undefined ? {} : { 'text/plain': text, 'text/vtt': text }),
    ...(mayStream ? { 'text/event-stream': text } : {}),
  }
  return { description, content: streamType === undefined ? { ...content, ...stream } : { '*/*': {} } }
}

/** Summaries of the paths below a task. */
const TASK_SUMMARIES: Readonly<Record<keyof typeof TASK_ACTIONS, string>> = {
  read: 'One task',
  cancel: 'Cancels a task that has not begun',
  content: 'Returns the content that the task produced',
  webhooks: 'Lists the messages about the task, and the results of their attempts',
  'webhooks/resend': 'Sends the messages about the task again',
}

function addTaskPaths(paths: OpenApiPaths, { id, path }: Endpoint): void {
  paths[path]!['get'] = {
    ...reading(`list_${nameOf(path)}`, 'Tasks, newest first', id),
    parameters: ['limit', 'after', 'before'].map((name) => ({
      name,
      in: 'query',
      required: false,
      schema: name === 'limit' ? { type: 'integer', minimum: 1, maximum: 100 } : { type: 'string' },
    })),
  }
  for (const [action, methods] of Object.entries(TASK_ACTIONS)) {
    const below = action === 'read' ? `${path}/{task}` : `${path}/{task}/${action}`
    const summary = TASK_SUMMARIES[action as keyof typeof TASK_ACTIONS]
    const operation = reading(`${action === 'read' ? 'get' : action.replace('/', '_')}_${nameOf(path)}`, summary, id)
    const responses = action === 'content' ? { 200: { description: summary, content: { '*/*': {} } } } : {}
    paths[below] = {
      [methodIn(methods)]: {
        ...operation,
        parameters: [pathParameter('task', 'Id of the task, at the gateway or at the vendor.')],
        responses: { ...operation.responses, ...responses },
      },
    }
  }
}

function addStoredPaths(paths: OpenApiPaths, { id, path, kept }: Endpoint): void {
  addObjectPaths(paths, id, kept?.objects)
  for (const [action, methods] of Object.entries(kept?.actions ?? {})) {
    const below = action === '' ? `${path}/{id}` : `${path}/{id}/${action}`
    const operations = methods.filter((method) => method !== 'HEAD').map((method) => method.toLowerCase())
    paths[below] = Object.fromEntries(
      operations.map((method) => [
        method,
        {
          ...reading(`${method}_stored_${nameOf(below)}`, `Stored answer: ${method} ${action}`.trim(), id),
          parameters: [pathParameter('id', 'Id of the answer.')],
        },
      ]),
    )
  }
}

function addObjectPaths(paths: OpenApiPaths, tag: string, objects: StoredObjects | undefined): void {
  for (const place of objects?.places ?? []) {
    const methods = objects?.methods(place.split('/').slice(1)) ?? []
    const path = `${objects?.path}${place}`
    const parameters = [...place.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => pathParameter(name))
    paths[path] = Object.fromEntries(
      methods
        .filter((method) => method !== 'HEAD')
        .map((method) => {
          const operation = reading(`${method.toLowerCase()}_${nameOf(path)}`, `${method} ${path}`, tag)
          const body = {
            requestBody: { required: false, content: { 'application/json': { schema: { type: 'object' } } } },
          }
          return [
            method.toLowerCase(),
            { ...operation, ...(parameters.length === 0 ? {} : { parameters }), ...(method === 'POST' ? body : {}) },
          ]
        }),
    )
  }
}

function methodIn(methods: readonly string[]): string {
  return methods.includes('GET') ? 'get' : 'post'
}

/** Returns a path as part of an operation's name: `/v1/chat/completions` → `chat_completions`. */
function nameOf(path: string): string {
  return path
    .replace(/^\/v1\//, '')
    .replaceAll(/[{}]/g, '')
    .replaceAll(/[^\w]+/g, '_')
}

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
function batchPaths(endpoints: readonly Endpoint[]): OpenApiPaths {
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
