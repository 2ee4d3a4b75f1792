import { GatewayError } from '../../core/errors.ts'
import { type FileDialect, pageSizeOf } from '../../endpoints/file-dialect.ts'
import type { FileRecord } from '../../stores/file-store.ts'
import { askedLifetimeMs } from './file-lifetime.ts'

const MAX_PAGE = 10_000

/** OpenAI's files (OpenAI API reference, "Files"). Callers get this shape unless their client has another one. */
export const openaiFiles: FileDialect = {
  readUpload(field) {
    const purpose = field('purpose')
    if (purpose !== 'batch') throw invalid('purpose', 'must be batch')
    const text = field('expires_after[seconds]')
    const anchor = field('expires_after[anchor]')
    if (text === undefined && anchor === undefined) return { purpose }
    const seconds = /^\d{1,9}$/.test(text ?? '') ? Number(text) : undefined
    return { purpose, lifetimeMs: askedLifetimeMs({ anchor, seconds }, (member) => `expires_after[${member}]`) }
  },
  readList(parameters) {
    const order = parameters.get('order') ?? 'desc'
    if (order !== 'asc' && order !== 'desc') throw invalid('order', 'must be asc or desc')
    return {
      limit: pageSizeOf(parameters, MAX_PAGE, MAX_PAGE),
      order,
      after: parameters.get('after') ?? undefined,
      purpose: parameters.get('purpose') ?? undefined,
    }
  },
  record,
  list: ({ files, hasMore }) => listObject(files.map(record), hasMore, files),
  deleted: (id) => ({ id, object: 'file', deleted: true }),
}

/** A file as callers read it (OpenAI API reference, "The File object"). */
function record({ id, purpose, filename, byteLength, createdAtMs, expiresAtMs }: FileRecord): object {
  return {
    id,
    object: 'file',
    bytes: byteLength,
    created_at: Math.floor(createdAtMs / 1_000),
    expires_at: Math.floor(expiresAtMs / 1_000),
    filename,
    purpose,
    status: 'processed',
  }
}

/** A page of objects (OpenAI API reference, lists). */
export function listObject(
  data: readonly object[],
  hasMore: boolean,
  owners: readonly { readonly id: string }[],
): object {
  return {
    object: 'list',
    data,
    has_more: hasMore,
    first_id: owners[0]?.id ?? null,
    last_id: owners.at(-1)?.id ?? null,
  }
}

function invalid(param: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', { message: `${param}: ${reason}`, param })
}
