import inspector from 'node:inspector/promises'
import { answerQuestions } from './child-process.mjs'

const [proxyFile, upstreamPort] = process.argv.slice(2)
const { serve } = await import(proxyFile)
const { server, account } = await serve({ upstreamPort: Number(upstreamPort) })
const session = new inspector.Session()

server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  answerQuestions(
    { port: server.address().port },
    {
      cpuMicroseconds: () => {
        const { user, system } = process.cpuUsage()
        return user + system
      },
      /** After a collection, so that garbage is not counted. */
      memoryBytes: () => {
        globalThis.gc()
        globalThis.gc()
        const { rss, heapUsed, external } = process.memoryUsage()
        const peakResident = process.resourceUsage().maxRSS * 1_024
        return { resident: rss, peakResident, used: heapUsed + external }
      },
      /** Undefined for proxies that keep no accounts. */
      account: () => account?.(),
      startProfile: async () => {
        session.connect()
        await session.post('Profiler.enable')
        await session.post('Profiler.setSamplingInterval', { interval: 200 })
        await session.post('Profiler.start')
      },
      stopProfile: async () => {
        const { profile } = await session.post('Profiler.stop')
        session.disconnect()
        return profile
      },
    },
  )
})
