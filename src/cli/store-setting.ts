import { SettingError } from './setting-error.ts'

/** Where accounts, keys and balances are kept. */
export type StoreSetting =
  | { readonly kind: 'memory' }
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string }

/** In the folder that the command is run in. */
export const DEFAULT_STORE: StoreSetting = { kind: 'sqlite', path: 'signalbox.db' }

/**
 * Reads `memory:`, `sqlite:PATH` or `postgres://…`.
 * @param name of the variable or option, for the error.
 * @throws SettingError, which never shows the text: a URL may hold a password.
 */
export function parseStoreSetting(name: string, text: string): StoreSetting {
  if (text === 'memory:' || text === 'sqlite::memory:') return { kind: 'memory' }
  if (text.startsWith('sqlite:') && text.length > 'sqlite:'.length)
    return { kind: 'sqlite', path: text.slice('sqlite:'.length) }
  if (/^postgres(?:ql)?:\/\/./.test(text) && URL.canParse(text)) return { kind: 'postgres', url: text }
  throw new SettingError(`${name}: must be memory:, sqlite:PATH or postgres://user:password@host/database`)
}

/** A store as it may be shown: without user, password and parameters. */
export function describeStore(setting: StoreSetting): string {
  if (setting.kind === 'memory') return 'memory:'
  if (setting.kind === 'sqlite') return `sqlite:${setting.path}`
  return describeUrl(setting.url)
}

/** A URL as it may be shown: scheme, host, port and path only. */
export function describeUrl(text: string): string {
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`
}
