import { answerQuestions } from './child-process.mjs'
import { processAnswers } from './process-answers.mjs'

const [proxyFile, upstreamPort] = process.argv.slice(2)
const { serve } = await import(proxyFile)
const { server, account } = await serve({ upstreamPort: Number(upstreamPort) })

server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () => {
  const { port } = server.address()
  /** `account` is undefined for proxies without accounts. */
  answerQuestions({ port }, { ...processAnswers, account: () => account?.() })
})
