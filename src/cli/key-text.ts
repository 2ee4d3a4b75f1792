import type { KeyRecord } from '../stores/key-store.ts'
import type { RateLimits } from '../stores/rate-limiter.ts'
import { capJson, capText } from './dollars-text.ts'

/** A key for machines, without the key itself. */
export function keyJson(record: KeyRecord) {
  const { limits } = record
  return {
    object: 'key',
    id: record.id,
    account: record.accountId,
    label: record.label,
    endpoints: record.scopes.endpoints ?? null,
    models: record.scopes.models ?? null,
    limits: {
      rpm: limits?.requestsPerMinute ?? null,
      tpm: limits?.tokensPerMinute ?? null,
      concurrency: limits?.concurrency ?? null,
    },
    cap: capJson(record.spendingCap),
    created_at: seconds(record.createdAtMs),
    expires_at: seconds(record.expiresAtMs),
    revoked_at: seconds(record.revokedAtMs),
  }
}

/** What a key is, name by name, for people. */
export function keyRows(record: KeyRecord): string[][] {
  return [
    ['id', record.id],
    ['account', record.accountId],
    ...(record.label === '' ? [] : [['label', record.label]]),
    ['endpoints', record.scopes.endpoints?.join(', ') ?? 'all'],
    ['models', record.scopes.models?.join(', ') ?? 'all'],
    ['limits', limitsText(record.limits)],
    ['cap', record.spendingCap === undefined ? 'none' : capText(record.spendingCap)],
    ['expires', record.expiresAtMs === undefined ? 'never' : new Date(record.expiresAtMs).toISOString()],
  ]
}

/** May a key be used, and until when? */
export function keyState(record: KeyRecord, nowMs: number): string {
  if (record.revokedAtMs !== undefined) return `revoked ${day(record.revokedAtMs)}`
  if (record.expiresAtMs === undefined) return 'valid'
  return record.expiresAtMs <= nowMs ? `expired ${day(record.expiresAtMs)}` : `valid until ${day(record.expiresAtMs)}`
}

function limitsText(limits: RateLimits | undefined): string {
  const parts = [
    ['rpm', limits?.requestsPerMinute],
    ['tpm', limits?.tokensPerMinute],
    ['concurrency', limits?.concurrency],
  ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
  return parts.length === 0 ? 'those of the gateway' : parts.join(',')
}

function day(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}

function seconds(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.floor(timeMs / 1000)
}
