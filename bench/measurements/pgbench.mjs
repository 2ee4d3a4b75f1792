import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { LOAD_CORE, pinned } from '../child-process.mjs'
import { postgresProgram, startPostgresServer } from '../postgres-server.mjs'

/** Scale of the tables: 1,000,000 rows, so that clients rarely wait for the same row. */
const SCALE = 10
/** Seconds before the measurement, in which the clients connect and prepare their statements, and after it. */
const SPARE_SECONDS = 2

/**
 * Measures the simple update of PostgreSQL's own benchmark, on a server like that of a gateway. `load.connections` is the number
 * of clients. They run on the core of vendor and driver.
 */
export const pgbench = {
  async prepare() {
    const server = await startPostgresServer()
    const options = ['--initialize', '--quiet', `--scale=${SCALE}`, server.url]
    execFileSync(postgresProgram('pgbench'), options, { stdio: 'ignore' })
    return server
  },

  async measure({ prepared: server, scenario, options }) {
    const seconds = Math.ceil(options.seconds)
    const { connections } = scenario.load
    const load = ['--skip-some-updates', '--protocol=prepared', '--no-vacuum', `--client=${connections}`]
    const extent = [`--time=${seconds + SPARE_SECONDS}`, '--progress=1', server.url]
    const command = pinned([postgresProgram('pgbench'), ...load, ...extent], LOAD_CORE)
    const environment = { ...process.env, LC_ALL: 'C' }
    const child = spawn(command.program, command.arguments, { env: environment, stdio: ['ignore', 'ignore', 'pipe'] })
    const ended = once(child, 'exit')
    const reports = []
    for await (const line of createInterface({ input: child.stderr })) {
      const perSecond = /^progress: .* s, ([\d.]+) tps/.exec(line)?.[1]
      if (perSecond === undefined) continue
      reports.push({ perSecond: Number(perSecond), cpuMicroseconds: await server.cpuMicroseconds() })
    }
    const [code] = await ended
    const measured = reports.slice(1, seconds + 1)
    if (code !== 0 || measured.length < seconds)
      throw new Error(`pgbench ended with code ${code} after ${reports.length} of ${seconds + 1} reports`)
    const transactions = measured.reduce((sum, { perSecond }) => sum + perSecond, 0)
    return {
      answersPerSecond: transactions / seconds,
      serverMicroseconds: (measured.at(-1).cpuMicroseconds - reports[0].cpuMicroseconds) / transactions,
    }
  },

  finish: ({ prepared: server }) => server.stop(),
}
