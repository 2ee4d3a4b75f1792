import { GatewayError } from '../../core/errors.ts'
import type { FileRecord } from '../../stores/file-store.ts'
import { DEFAULT_FILE_TYPE, type FileDialect, pageSizeOf } from '../file-dialect.ts'

const MIN_LIFETIME_SECONDS = 3_600
const MAX_LIFETIME_SECONDS = 7_776_000
const MAX_IDS = 100

/**
 * Anthropic's files (Anthropic API, "Files"). Newer clients follow `next_page` by `page`; older ones follow `last_id` by `after_id`.
 * An upload names no purpose. It can be the input of a batch, like other uploads.
 */
export const messageFiles: FileDialect = {
  readUpload(field) {
    const purpose = field('purpose') ?? 'batch'
    if (purpose !== 'batch') throw invalid('purpose', 'omit it, or send batch')
    const text = field('expires_in_seconds')
    if (text === undefined) return { purpose }
    const seconds = /^\d{1,9}$/.test(text) ? Number(text) : 0
    if (seconds < MIN_LIFETIME_SECONDS || seconds > MAX_LIFETIME_SECONDS)
      throw invalid(
        'expires_in_seconds',
        `must be a whole number from ${MIN_LIFETIME_SECONDS} to ${MAX_LIFETIME_SECONDS}`,
      )
    return { purpose, lifetimeMs: seconds * 1_000 }
  },
  readList(parameters) {
    const after = parameters.get('page') ?? parameters.get('after_id') ?? undefined
    const before = parameters.get('before_id') ?? undefined
    if (after !== undefined && before !== undefined)
      throw invalid('before_id', 'cannot be combined with another cursor')
    const page = { limit: pageSizeOf(parameters, 20, 1_000), order: 'desc', after, before } as const
    // Files belong to no session, so a list of one session is empty.
    if (parameters.has('scope_id')) return { ...page, ids: [] }
    const ids = [...new Set([...parameters.getAll('ids[]'), ...parameters.getAll('ids')])]
    if (ids.length === 0) return page
    if (ids.length > MAX_IDS) throw invalid('ids', `must have at most ${MAX_IDS} entries`)
    if (after !== undefined || before !== undefined || parameters.has('limit'))
      throw invalid('ids', 'cannot be combined with limit or a cursor')
    return { ...page, ids }
  },
  record,
  list: ({ files, hasMore }) => ({
    data: files.map(record),
    has_more: hasMore,
    first_id: files[0]?.id ?? null,
    last_id: files.at(-1)?.id ?? null,
    next_page: hasMore ? (files.at(-1)?.id ?? null) : null,
  }),
  deleted: (id) => ({ id, type: 'file_deleted' }),
}

/** The object `BetaFileMetadata` of the SDK. */
function record({ id, filename, mimeType, byteLength, createdAtMs, expiresAtMs }: FileRecord): object {
  return {
    id,
    type: 'file',
    filename,
    mime_type: mimeType ?? DEFAULT_FILE_TYPE,
    size_bytes: byteLength,
    created_at: new Date(createdAtMs).toISOString(),
    expires_at: new Date(expiresAtMs).toISOString(),
    downloadable: true,
  }
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}
