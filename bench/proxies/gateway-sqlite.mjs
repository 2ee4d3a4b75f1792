import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { importBuilt } from '../built.mjs'
import { serve as serveGateway } from './gateway.mjs'

export const name = 'gateway-sqlite'
export const title = 'signalbox, SQLite'
export const isTranslating = true
export const isOwn = true

/** Scenarios that compare durable billing with billing in memory. */
export const scenarios = ['chat-json']

/** The gateway with its money in a SQLite file, which is flushed before a charge is acknowledged. */
export async function serve({ upstreamPort }) {
  const { sqliteStore } = await importBuilt('sqlite')
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return serveGateway({ upstreamPort, store: sqliteStore({ path: join(folder, 'bench.db') }) })
}
