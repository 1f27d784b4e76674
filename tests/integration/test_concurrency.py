"""Many commands at once: what does not fit waits its turn, and none is refused for it."""
import concurrent.futures


def test_more_at_once_than_the_agent_has_places(own_berthd):
    own_berthd.settings.update(SANDBOX_MAX_CONCURRENCY=100)
    own_berthd.start()
    session = own_berthd.create()["id"]
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        codes = list(pool.map(lambda i: own_berthd.exec(session, f"exit {i % 100}")["exit_code"], range(300)))
    assert codes == [i % 100 for i in range(300)]
